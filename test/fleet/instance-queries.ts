/** Reads the environments of payments and the readiness of an instance. */

import assert from 'node:assert/strict';
import { call, jsonOf } from '../kit/call.ts';
import type { Instance } from '../kit/fleet.ts';
import { transfersPath } from '../kit/request.ts';

/** The environment of each payment according to an instance, or the error code. */
export async function environmentsOf(
  ids: readonly string[],
  instance: Instance,
): Promise<readonly (string | undefined)[]> {
  const replies = await Promise.all(
    ids.map((id) => instance.ask('shop', { method: 'GET', path: `${transfersPath}/${id}/status` })),
  );
  return replies.map((reply) =>
    reply.status === 200 ? reply.header('Penstock-Environment') : reply.header('Penstock-Error'),
  );
}

/** The reasons in /health/ready. */
/** Without what is known of the PostgreSQL of the tests: it has no standby, and `fsync = off`. */
export async function readinessReasons({ adminUrl }: Instance): Promise<readonly unknown[]> {
  const { reasons } = jsonOf(await call(adminUrl, { method: 'GET', path: '/health/ready' }));
  assert.ok(Array.isArray(reasons));
  return reasons.filter((reason) => !/^fsync is off|^PostgreSQL has no standby/.test(reason));
}
