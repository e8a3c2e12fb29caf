/** What an instance of a fleet tells when it is asked. */

import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { call, jsonOf, type Reply } from '../kit/call.ts';
import type { Instance } from '../kit/fleet.ts';
import { transfers } from '../kit/request.ts';
import { until } from '../kit/within.ts';

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

/** On a machine so busy that Redis takes longer than 50 ms, nothing is sent: as a TPP would, asks again, and says so. */
export async function answered(t: TestContext, ask: () => Promise<Reply>): Promise<Reply> {
  let reply = await ask();
  const isRefused = () => reply.header('Penstock-Error') === 'STATE_UNAVAILABLE';
  if (!isRefused()) return reply;
  t.diagnostic('asked again: Redis took too long');
  await until(10_000, 'the state is within reach', async () => {
    reply = await ask();
    return !isRefused();
  });
  return reply;
}
