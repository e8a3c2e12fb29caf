/** Reads `/api/events` of an admin listener until the stream ends. */

import { within } from './within.ts';

export interface EventReader {
  readonly status: number;
  /** Waits for the event with this name. @returns its data */
  event(name: string): Promise<Readonly<Record<string, unknown>>>;
  /** Waits until the stream ends. */
  ended(): Promise<void>;
}

/** @param headers the credential */
export async function readEvents(
  adminUrl: string,
  headers: Readonly<Record<string, string>>,
): Promise<EventReader> {
  const response = await within(20_000, 'an event stream', fetch(`${adminUrl}/api/events`, { headers }));
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = '';

  /** The next event; `undefined` at the end. */
  async function next(): Promise<readonly [string, string] | undefined> {
    for (;;) {
      const end = buffer.indexOf('\n\n');
      if (end >= 0) {
        const [, name = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(buffer.slice(0, end)) ?? [];
        buffer = buffer.slice(end + 2);
        return [name, data];
      }
      const chunk = await reader?.read();
      if (!chunk || chunk.done) return undefined;
      buffer += chunk.value;
    }
  }

  async function find(wanted: string): Promise<Readonly<Record<string, unknown>>> {
    for (let found = await next(); found; found = await next())
      if (found[0] === wanted) return JSON.parse(found[1]);
    throw new Error(`the stream ended without the event ${wanted}`);
  }

  async function drain(): Promise<void> {
    while (await next());
  }

  return {
    status: response.status,
    event: (name) => within(20_000, `the event ${name}`, find(name)),
    ended: () => within(20_000, 'the end of the event stream', drain()),
  };
}
