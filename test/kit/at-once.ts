/** Many equal calls that are all under way before the first is answered. */

import { Agent } from 'node:http';
import { type Call, call, type Reply } from './call.ts';
import type { Life } from './life.ts';
import { until } from './within.ts';

/**
 * Sends a call many times on connections of their own, to each of the gateways in turn, and comes back when all are there.
 *
 * @param count at most 500 a gateway: the system keeps no more connections waiting to be accepted
 * @returns the replies to come
 */
export async function sendAtOnce(
  life: Life,
  gateways: readonly { readonly url: string }[],
  one: Call,
  count: number,
): Promise<{ readonly replies: Promise<readonly Reply[]> }> {
  const agent = new Agent({ keepAlive: true });
  life.after(() => agent.destroy());
  const urls = gateways.map(({ url }) => url);
  const replies = Promise.all(
    Array.from({ length: count }, (_, index) => call(urls[index % urls.length] ?? '', one, agent)),
  );
  const sockets = () => Object.values(agent.sockets).flatMap((some = []) => some);
  const sent = () => sockets().filter(({ connecting, bytesWritten }) => !connecting && bytesWritten > 0);
  await until(10_000, 'all are sent', () => sent().length === count);
  for (const url of urls) await call(url, { method: 'GET', path: '/' }); // it is read behind the others
  return { replies };
}
