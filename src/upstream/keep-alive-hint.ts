/** How long a bank says that it keeps an idle connection: `Keep-Alive: timeout=5`, which nginx, Apache and Node write. */

import { lowerCase } from '../pis/headers.ts';

/** What it says may be over before our next request is there. Milliseconds. */
const spareMs = 1_000;

/** Milliseconds for which the connection may be used again; without end if the answer does not say. */
export function hintedMs(rawHeaders: readonly string[]): number {
  const at = rawHeaders.findIndex((name, index) => index % 2 === 0 && isKeepAlive(name));
  if (at < 0) return Number.POSITIVE_INFINITY;
  const [, seconds] = /^timeout=(\d+)/.exec(rawHeaders[at + 1] ?? '') ?? [];
  return seconds === undefined ? Number.POSITIVE_INFINITY : Math.max(0, Number(seconds) * 1_000 - spareMs);
}

const isKeepAlive = (name: string) => name.length === 10 && lowerCase(name) === 'keep-alive';
