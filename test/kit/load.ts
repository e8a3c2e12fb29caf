/** Requests at a steady pace, until they are stopped or for a fixed time, and the outcome of each. */

import { setImmediate, setTimeout } from 'node:timers/promises';
import type { Call, Reply } from './call.ts';
import { endWith, type TestScope } from './test-scope.ts';

/** How many requests, and for how long: by default until the load is stopped. */
export interface Pace {
  readonly perSecond: number;
  readonly forMs?: number;
  /** Requests without a response at which the load pauses, so that a slow machine is not overloaded. By default 20. */
  readonly maxInFlight?: number;
}

/** One request, and its answer or why there is none. Times in milliseconds, on the clock of `performance.now()`. */
export interface Exchange {
  readonly call: Call;
  readonly sentAtMs: number;
  readonly tookMs: number;
  readonly came: Reply | Error;
}

/** A running load. */
export interface Load {
  /** Waits until that many requests have been sent. */
  hasSent(count: number): Promise<void>;
  /** Waits until that many more requests have been sent. */
  hasSentMore(count: number): Promise<void>;
  /** All exchanges, in the order of sending, when the last one is over. */
  readonly ended: Promise<readonly Exchange[]>;
  /** Sends no more requests. @returns as `ended` */
  stop(): Promise<readonly Exchange[]>;
}

/** @param send sends the request of this number, counted from 0; must not reject */
export function startLoad(
  life: TestScope,
  { perSecond, forMs = Infinity, maxInFlight = 20 }: Pace,
  send: (number: number) => Promise<Exchange>,
): Load {
  const running: Promise<Exchange>[] = [];
  const waiting = new Set<{ readonly count: number; readonly go: () => void }>();
  let total = Math.round((perSecond * forMs) / 1_000);
  const start = performance.now();
  let inFlight = 0;

  const sendWhatIsDue = () => {
    const due = Math.min(total, Math.floor(((performance.now() - start) * perSecond) / 1_000) + 1);
    while (running.length < due && inFlight < maxInFlight) {
      inFlight++;
      running.push(send(running.length).finally(() => inFlight--));
    }
    for (const one of waiting) if (running.length >= one.count) one.go();
  };
  const play = async () => {
    while (running.length < total) {
      sendWhatIsDue();
      await setTimeout(4);
      await setImmediate(); // after a pause of this process: notice first which connections were closed
    }
    return Promise.all(running);
  };

  const ended = play();
  const hasSent = (count: number) =>
    new Promise<void>((go) => void waiting.add({ count: Math.min(count, total), go }));
  const stop = () => {
    total = running.length;
    return ended;
  };
  endWith(life, stop);
  return { hasSent, hasSentMore: (count) => hasSent(running.length + count), ended, stop };
}

/** One exchange, timed. @param ask sends the call and waits for the answer */
export async function measureExchange(one: Call, ask: (one: Call) => Promise<Reply>): Promise<Exchange> {
  const sentAtMs = performance.now();
  const came = await ask(one).catch((thrown: unknown) =>
    thrown instanceof Error ? thrown : new Error(`${thrown}`),
  );
  return { call: one, sentAtMs, tookMs: performance.now() - sentAtMs, came };
}

/** A description of each kind of failure, with the number of its occurrences. */
export function failuresIn(exchanges: readonly Exchange[]): Readonly<Record<string, number>> {
  const sorts = exchanges
    .filter((one) => !isWell(one))
    .map(({ call: { method }, came }) => `${method}: ${wordsFor(came)}`);
  return Object.fromEntries(
    [...new Set(sorts)].map((sort) => [sort, sorts.filter((one) => one === sort).length]),
  );
}

const isWell = ({ came }: Exchange) => !(came instanceof Error) && came.status < 300;

const wordsFor = (came: Reply | Error) =>
  came instanceof Error
    ? `${'code' in came ? came.code : ''} ${came.message}`
    : `${came.status} ${came.header('Penstock-Error') ?? came.text}`;
