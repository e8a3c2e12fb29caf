/** Reads the status of a payment as server-sent events, as a TPP does. */

import { randomUUID } from 'node:crypto';
import { within } from './within.ts';

export interface StatusStream {
  readonly response: Response;
  /** Waits for the next event; `undefined` at the end of the stream. */
  next(): Promise<StatusEvent | undefined>;
  /** Disconnects. */
  close(): void;
}

export interface StatusEvent {
  readonly event: string;
  readonly id: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** @param path of the status */
export async function openStatusStream(
  origin: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<StatusStream> {
  const disconnect = new AbortController();
  const response = await within(
    60_000,
    'an event stream',
    fetch(origin + path, {
      headers: { Accept: 'text/event-stream', 'X-Request-ID': randomUUID(), ...headers },
      signal: disconnect.signal,
    }),
  );
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = '';

  async function next(): Promise<StatusEvent | undefined> {
    for (;;) {
      const end = buffer.indexOf('\n\n');
      if (end >= 0) {
        const lines = buffer.slice(0, end).split('\n');
        buffer = buffer.slice(end + 2);
        const value = (name: string) =>
          lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? '';
        if (lines.every((line) => line.startsWith(':'))) continue;
        return { event: value('event'), id: value('id'), data: JSON.parse(value('data')) };
      }
      const chunk = await reader?.read();
      if (!chunk || chunk.done) return undefined;
      buffer += chunk.value;
    }
  }

  return {
    response,
    next: () => within(60_000, 'an event', next()),
    close: () => disconnect.abort(),
  };
}
