/** Why a circuit opened: the first failed call of its window, for operators. */

/** A call that the circuit has counted as failed. */
export interface FailedCall {
  readonly xRequestId: string;
  readonly operation: string;
  readonly tenant: string;
  /** Such as `the bank answered 503`. */
  readonly why: string;
}

/** The first cause of an open circuit: it stays until the circuit is closed, whatever fails afterwards. */
export interface CircuitCause extends FailedCall {
  /** When this call ended, as in RFC 3339. */
  readonly at: string;
  /** When the circuit opened. */
  readonly openedAt: string;
  /** How many calls had failed until then. */
  readonly count: number;
  /** How many calls had been counted. */
  readonly calls: number;
}

export interface FirstFailure {
  record(call: FailedCall): void;
  /** The cause of a circuit that opens now; `undefined` if no failed call is known. */
  causeOf(count: number, calls: number): CircuitCause | undefined;
  /** Forgets all calls. */
  reset(): void;
}

interface RecordedCall {
  /** On the monotonic clock. */
  readonly atMs: number;
  readonly at: string;
  readonly call: FailedCall;
}

/** So many calls are stored at most: the window slides by this part of itself. */
const storedPerWindow = 10;

/**
 * @param windowMs `circuit.window`
 * @param now milliseconds of a monotonic clock
 * @param wall milliseconds since 1970
 */
export function createFirstFailure(windowMs: number, now: () => number, wall: () => number): FirstFailure {
  let recorded: readonly RecordedCall[] = [];

  /** Without the calls that have left the window. */
  const inWindow = () => recorded.filter(({ atMs }) => atMs > now() - windowMs);

  return {
    record(call) {
      const atMs = now();
      const last = recorded.at(-1);
      if (last && atMs - last.atMs < windowMs / storedPerWindow) return;
      recorded = [...inWindow(), { atMs, at: new Date(wall()).toISOString(), call }];
    },
    causeOf(count, calls) {
      const [first] = inWindow();
      if (!first) return undefined;
      return { ...first.call, at: first.at, openedAt: new Date(wall()).toISOString(), count, calls };
    },
    reset() {
      recorded = [];
    },
  };
}

/**
 * The cause for a lane: of the circuits that opened with the last one of them, the one whose call failed first. A circuit of a
 * tenant that has been open for a longer time has another cause.
 *
 * @param causes of the circuits that are not closed
 */
export function causeOfLane(causes: readonly CircuitCause[], windowMs: number): CircuitCause | undefined {
  const openedMs = causes.map(({ openedAt }) => Date.parse(openedAt));
  const fromMs = Math.max(...openedMs) - windowMs;
  return causes
    .filter((_, index) => (openedMs[index] ?? 0) >= fromMs)
    .toSorted((one, other) => one.at.localeCompare(other.at))[0];
}
