/** An open load: requests at a fixed rate, each measured from when it should have been sent. */

import { randomUUID } from 'node:crypto';
import { Agent, request as startRequest } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { Load, Request } from './load.ts';
import { percentile } from './statistics.ts';

/** How long the last answers are waited for. Milliseconds. */
const patienceMs = 10_000;

/**
 * A server that stalls does not slow the load down: whoever would have asked meanwhile has waited, and is counted so
 * (what a closed load leaves out: "coordinated omission", Gil Tene).
 */
export async function sendSteadily(
  request: Request,
  {
    port,
    perSecond,
    seconds,
  }: { readonly port: number; readonly perSecond: number; readonly seconds: number },
): Promise<Load> {
  const agent = new Agent({ keepAlive: true, scheduling: 'lifo' });
  const tookMs: number[] = [];
  const count = perSecond * seconds;
  let errors = 0;
  const startMs = performance.now();
  for (let sent = 0; sent < count; ) {
    const dueMs = startMs + (sent * 1_000) / perSecond;
    if (performance.now() < dueMs) {
      await setImmediate(); // a timer would be up to 1 ms late, and that would be taken for the server's delay
      continue;
    }
    sent++;
    ask(request, port, agent).then(
      () => tookMs.push(performance.now() - dueMs),
      () => errors++,
    );
  }
  const deadline = performance.now() + patienceMs;
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

/** @throws Error if there is no whole answer below 400 */
function ask({ method, path, headers, body }: Request, port: number, agent: Agent): Promise<void> {
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
    call.on('error', reject).on('response', (answer) => {
      answer.on('error', reject).on('end', resolve).resume();
      if ((answer.statusCode ?? 500) >= 400) reject(new Error(`answered ${answer.statusCode}`));
    });
    call.end(body);
  });
}
