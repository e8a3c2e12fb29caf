/** Sends many equal calls so that all of them are in progress before the first response. */

import { Agent } from 'node:http';
import { type Call, call, type Reply } from './call.ts';
import type { TestScope } from './test-scope.ts';
import { until } from './within.ts';

/** A thousand calls at once would delay the event loop of this process, and its gateways would shed load. */
const batchSize = 100;

/**
 * Sends a call many times on separate connections, to each of the gateways in rotation, and resolves when all have arrived.
 *
 * @param count at most 500 per gateway: the kernel's accept queue is limited
 * @returns the promised replies
 */
export async function sendConcurrently(
  life: TestScope,
  gateways: readonly { readonly url: string }[],
  one: Call,
  count: number,
): Promise<{ readonly replies: Promise<readonly Reply[]> }> {
  const agent = new Agent({ keepAlive: true });
  life.after(() => agent.destroy());
  const urls = gateways.map(({ url }) => url);
  const replies: Promise<Reply>[] = [];
  let answered = 0;
  const send = (url: string) => call(url, one, agent).finally(() => answered++);
  const sockets = () => Object.values(agent.sockets).flatMap((some = []) => some);
  const sent = () => sockets().filter(({ connecting, bytesWritten }) => !connecting && bytesWritten > 0);
  while (replies.length < count) {
    for (let size = Math.min(batchSize, count - replies.length); size > 0; size--)
      replies.push(send(urls[replies.length % urls.length] ?? ''));
    await until(10_000, 'the batch is sent', () => sent().length + answered === replies.length);
    for (const url of urls) await call(url, { method: 'GET', path: '/' }); // the gateway reads this request after the others
  }
  return { replies: Promise.all(replies) };
}
