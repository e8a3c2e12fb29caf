/** What an instance of a fleet tells when it is asked. */

import assert from 'node:assert/strict';
import { call, jsonOf } from '../kit/call.ts';
import type { Instance } from '../kit/fleet.ts';
import { transfers } from '../kit/request.ts';

/** Where an instance finds these payments. */
export async function homesOf(
  ids: readonly string[],
  instance: Instance,
): Promise<readonly (string | undefined)[]> {
  const replies = await Promise.all(
    ids.map((id) => instance.ask('shop', { method: 'GET', path: `${transfers}/${id}/status` })),
  );
  return replies.map((reply) =>
    reply.status === 200 ? reply.header('Penstock-Environment') : reply.header('Penstock-Error'),
  );
}

/** What there is to say about its readiness. */
export async function reasonsOf({ adminUrl }: Instance): Promise<readonly unknown[]> {
  const { reasons } = jsonOf(await call(adminUrl, { method: 'GET', path: '/health/ready' }));
  assert.ok(Array.isArray(reasons));
  return reasons;
}
