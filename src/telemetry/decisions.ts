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

/** How many requests are remembered of each kind: some two megabytes each. */
const mostKept = 2_000;

/** Each lane has a place of its own, and so has the door: no flood of polls or refusals drives payments out. */
export function createDecisions(most = mostKept): Decisions {
  const rings = { write: createRing(most), read: createRing(most), status: createRing(most) };
  const door = createRing(most);
  let count = 0;
  return {
    decided(decision) {
      if (decision.requestId === undefined) return; // nobody can ask for it
      const ring = decision.asked ? rings[decision.asked.lane] : door;
      ring.keep({ number: count++, decision });
    },
    of(xRequestId) {
      const id = xRequestId.toLowerCase();
      return [...Object.values(rings), door]
        .flatMap((ring) => ring.all())
        .filter(({ decision }) => decision.requestId?.toLowerCase() === id)
        .toSorted((one, other) => other.number - one.number)
        .map(({ decision }) => accountOf(decision));
    },
  };
}

interface Kept {
  /** Later ones have higher ones. */
  readonly number: number;
  readonly decision: Decision;
}

function createRing(most: number) {
  const kept: Kept[] = [];
  let next = 0;
  return {
    keep(one: Kept): void {
      kept[next] = one;
      next = (next + 1) % most;
    },
    all: (): readonly Kept[] => kept,
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
