/** The TPP systems of the benchmark: waiting reads, which are sent again and again, and event streams. */

import { randomUUID } from 'node:crypto';
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { TestScope } from '../../test/kit/test-scope.ts';

export interface Target {
  /** Origin of an instance. */
  readonly url: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payment: number;
}

export interface Listeners {
  /** Waits for one change after the other. */
  wait(target: Target): void;
  /** Opens an event stream. */
  stream(target: Target): void;
  /** The responses that are no 200 or 304, by status. */
  errors(): ReadonlyMap<number, number>;
}

/** @param onChange called when a listener receives a status that it did not know */
export function createListeners(life: TestScope, onChange: (payment: number) => void): Listeners {
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  const errors = new Map<number, number>();
  let stopped = false;
  life.after(() => {
    stopped = true;
    agent.destroy();
  });

  const count = (status: number) => errors.set(status, (errors.get(status) ?? 0) + 1);

  function send(
    { url, path, headers }: Target,
    more: object,
    onResponse: (response: IncomingMessage) => void,
  ) {
    const sent: ClientRequest = request(url + path, {
      agent,
      headers: { ...headers, ...more, 'X-Request-ID': randomUUID() },
    });
    sent.on('response', onResponse).on('error', () => {
      if (!stopped) count(0);
    });
    sent.end();
  }

  function wait(target: Target, tag?: string): void {
    if (stopped) return;
    send(target, { Prefer: 'wait=50', ...(tag && { 'If-None-Match': tag }) }, (response) => {
      const { statusCode = 0, headers } = response;
      if (statusCode === 200 && tag !== undefined) onChange(target.payment);
      if (statusCode !== 200 && statusCode !== 304) count(statusCode);
      response.resume().on('end', () => {
        if (statusCode === 200 || statusCode === 304) wait(target, headers.etag);
        else setTimeout(wait, 1_000, target);
      });
    });
  }

  return {
    // The first read gets the tag; the next one waits.
    wait: (target) =>
      send(target, {}, (response) => {
        response.resume().on('end', () => wait(target, response.headers.etag));
      }),
    stream: (target) =>
      send(target, { Accept: 'text/event-stream' }, (response) => {
        if (response.statusCode !== 200) count(response.statusCode ?? 0);
        let isFirst = true;
        response.setEncoding('utf8').on('data', (text: string) => {
          for (const _ of text.matchAll(/^event: status$/gm)) {
            if (!isFirst) onChange(target.payment);
            isFirst = false;
          }
        });
      }),
    errors: () => errors,
  };
}
