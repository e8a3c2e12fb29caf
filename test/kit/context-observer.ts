/**
 * Preloaded into a gateway process (`node --import`): observes the contexts of its requests from their creation on, and answers
 * each connection to the Unix socket CONTEXT_OBSERVER with a `ContextReport` as JSON.
 *
 * A context is finished when the gateway releases its body, which it does directly after it has handed over the response.
 */

import { registerHooks } from 'node:module';
import { createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { getHeapSnapshot, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { PisRequest } from '../../src/request/messages.ts';

export interface ContextReport {
  readonly created: number;
  readonly finished: number;
  /** The slots that were written when their context was already finished. */
  readonly lateWrites: readonly string[];
  /** Bodies of finished requests that a garbage collection did not free. */
  readonly keptBodies: number;
  /** Whether the text that the client of the socket sent, in Base64, is in a heap snapshot; false if it sent none. */
  readonly isTextKept: boolean;
}

let created = 0;
let finished = 0;
const lateWrites: string[] = [];
const finishedBodies: WeakRef<Buffer>[] = [];

/** Called by the replacement of `createRequestReader` below. */
export function observeContext(context: PisRequest): PisRequest {
  created += 1;
  const body = new WeakRef(context.body);
  let isFinished = false;
  return new Proxy(context, {
    set(target, slot, value) {
      if (isFinished) lateWrites.push(String(slot));
      if (!isFinished && slot === 'body') {
        isFinished = true;
        finished += 1;
        if (target.body.length > 0) finishedBodies.push(body);
      }
      return Reflect.set(target, slot, value);
    },
  });
}

const reader = new URL('../../src/http/read-request.ts', import.meta.url).href;
registerHooks({
  load: (url, context, nextLoad) =>
    url === reader
      ? {
          format: 'module',
          shortCircuit: true,
          source: `
            import { createRequestReader as create } from '${reader}?original';
            import { observeContext } from '${import.meta.url}';
            export const createRequestReader = (settings) => {
              const read = create(settings);
              return (...request) => {
                const context = read(...request);
                return context instanceof Promise ? context.then(observeContext) : observeContext(context);
              };
            };`,
        }
      : nextLoad(url, context),
});

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

createServer(async (client) => {
  client.setEncoding('latin1').once('data', async (base64: string) => {
    collectGarbage();
    const keptBodies = finishedBodies.filter((body) => body.deref() !== undefined).length;
    const wanted = base64.trim();
    // Decoded behind the snapshot: otherwise it would contain the text in any case.
    const isTextKept =
      wanted !== '' && (await text(getHeapSnapshot())).includes(Buffer.from(wanted, 'base64').toString());
    const report: ContextReport = { created, finished, lateWrites, keptBodies, isTextKept };
    client.end(JSON.stringify(report));
  });
})
  .listen(process.env.CONTEXT_OBSERVER)
  .unref();
