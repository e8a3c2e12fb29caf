/** An open load: requests at a fixed rate, each measured from the time at which it was due. */

import { randomUUID } from 'node:crypto';
import { Agent, request as startRequest } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { BenchRequest, LoadResult } from './load.ts';
import { percentile } from './statistics.ts';

/** Maximum wait for the last responses, in milliseconds. */
const drainTimeoutMs = 10_000;

/**
 * A stalled server does not slow the load down: requests that become due during the stall count with their wait. A closed
 * load omits them ("coordinated omission", Gil Tene).
 */
export async function sendAtFixedRate(
  request: BenchRequest,
  {
    port,
    perSecond,
    seconds,
  }: { readonly port: number; readonly perSecond: number; readonly seconds: number },
): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, scheduling: 'lifo' });
  const tookMs: number[] = [];
  const count = perSecond * seconds;
  let errors = 0;
  const startMs = performance.now();
  for (let sent = 0; sent < count; ) {
    const dueMs = startMs + (sent * 1_000) / perSecond;
    if (performance.now() < dueMs) {
      await setImmediate(); // a timer would be up to 1 ms late, which would count as delay of the server
      continue;
    }
    sent++;
    sendRequest(request, port, agent).then(
      () => tookMs.push(performance.now() - dueMs),
      () => errors++,
    );
  }
  const deadline = performance.now() + drainTimeoutMs;
  while (tookMs.length + errors < count && performance.now() < deadline) await setImmediate();
  agent.destroy();
  return {
    requests: tookMs.length,
    seconds: (performance.now() - startMs) / 1_000,
    p50Ms: percentile(tookMs, 0.5),
    p99Ms: percentile(tookMs, 0.99),
    errors: count - tookMs.length,
  };
}

/** @throws Error if there is no complete response below 400 */
function sendRequest(
  { method, path, headers, body }: BenchRequest,
  port: number,
  agent: Agent,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const own = method === 'POST' ? { 'X-Request-ID': randomUUID() } : {};
    const call = startRequest({
      port,
      host: '127.0.0.1',
      agent,
      method,
      path,
      headers: { ...headers, ...own },
    });
    call.on('error', reject).on('response', (response) => {
      response.on('error', reject).on('end', resolve).resume();
      if ((response.statusCode ?? 500) >= 400) reject(new Error(`status ${response.statusCode}`));
    });
    call.end(body);
  });
}
