/** The last decisions of this instance, for "why was my call refused": in memory, bounded, gone with the process. */

import type { Decision, Observer } from './decision.ts';

/** One request, as operators are told of it. Times in milliseconds. */
export interface Account {
  /** When it came in: RFC 3339. */
  readonly at: string;
  readonly xRequestId: string;
  /** `null` in these three: refused at the door, before it was known. */
  readonly operation: string | null;
  readonly client: string | null;
  readonly tenant: string | null;
  readonly environment: string | null;
  readonly status: number;
  readonly error?: string;
  readonly why?: string;
  readonly servedFrom?: string;
  readonly durationMs: number | null;
  /** What was decided and happened, in order: each with `what`, and what belongs to it. */
  readonly steps: readonly Readonly<Record<string, string | number>>[];
}

export interface Decisions extends Observer {
  /** Every request with this id that is remembered, the newest first. @param xRequestId in any letter case */
  of(xRequestId: string): readonly Account[];
}

/** How many requests are remembered: some two megabytes. */
const mostKept = 2_000;

export function createDecisions(most = mostKept): Decisions {
  const ring: Decision[] = [];
  let next = 0;
  return {
    decided(decision) {
      if (decision.requestId === undefined) return; // nobody can ask for it
      ring[next] = decision;
      next = (next + 1) % most;
    },
    of(xRequestId) {
      const id = xRequestId.toLowerCase();
      const inOrder = [...ring.slice(next), ...ring.slice(0, next)];
      return inOrder
        .filter(({ requestId }) => requestId?.toLowerCase() === id)
        .map(accountOf)
        .reverse();
    },
  };
}

function accountOf(decision: Decision): Account {
  const { at, requestId = '', asked, environment, status, servedFrom, durationMs, error, steps } = decision;
  return {
    at: new Date(at).toISOString(),
    xRequestId: requestId,
    operation: asked?.operation ?? null,
    client: asked?.client ?? null,
    tenant: asked?.tenant ?? null,
    environment: environment ?? null,
    status,
    ...(error && { error: error.code, why: error.why }),
    ...(servedFrom && { servedFrom }),
    durationMs: durationMs === undefined ? null : rounded(durationMs),
    steps: steps.map(({ afterMs, fact }) => ({ afterMs: rounded(afterMs), ...withRoundTimes(fact) })),
  };
}

const withRoundTimes = (fact: object) =>
  Object.fromEntries(
    Object.entries(fact).map(([name, value]) => [name, name.endsWith('Ms') ? rounded(value) : value]),
  );

const rounded = (ms: number) => Math.round(ms * 10) / 10;
