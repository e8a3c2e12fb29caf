/** How an open circuit finds out that the bank is back: after a pause, which grows with each attempt that was in vain. */

import type { Lane } from '../../pis/operations.ts';
import type { ThrottleResponse } from '../shaping/adaptive-rate.ts';
import type { RateLimiter } from '../shaping/rate-limiter.ts';
import { type CallOutcome, classifyError, classifyProbeStatus } from './classify-outcome.ts';

/** The longest pause, in milliseconds. */
const maxPauseMs = 120_000;
/** How soon it is tried again if the bank could not be asked at all. Milliseconds. */
const retryMs = 1_000;

export interface Recovery {
  /** The circuit has opened. @returns how long it will be left alone, in milliseconds */
  start(): number;
  /** The bank has done what it was asked for: the next pause is the first again. */
  reset(): void;
  close(): void;
}

interface RecoveryDependencies {
  readonly openForMs: number;
  /** Never rejects. */
  readonly probe: () => Promise<CallOutcome>;
  /** Whether operators want nothing to be sent, probes included. */
  readonly isHeldOpen: () => boolean;
  /** The pause is over, and the bank is being asked. */
  readonly onProbeStart: () => void;
  /** What it answered. */
  readonly onProbeResult: (verdict: 'well' | 'failing') => void;
}

export function createRecovery({
  openForMs,
  probe,
  isHeldOpen,
  onProbeStart,
  onProbeResult,
}: RecoveryDependencies): Recovery {
  let nextMs = openForMs;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  async function attempt(): Promise<void> {
    if (isHeldOpen()) return attemptIn(retryMs);
    onProbeStart();
    const verdict = await probe();
    if (isClosed) return;
    if (verdict === 'nothing') attemptIn(retryMs);
    else onProbeResult(verdict);
  }

  function attemptIn(ms: number): void {
    if (isClosed) return;
    timer = setTimeout(attempt, ms);
    timer.unref();
  }

  return {
    start() {
      const pauseMs = nextMs;
      nextMs = Math.min(pauseMs * 2, maxPauseMs);
      attemptIn(pauseMs);
      return pauseMs;
    },
    reset() {
      nextMs = openForMs;
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

// MERGED HEADER (rewrite or remove):
/* Asks the bank whether it is back: by a GET of the gateway's own, never by a payment. */

/**
 * Never rejects, and comes back in bounded time.
 *
 * @param lane whose circuit wants to know
 * @returns `nothing` if the bank could not be asked
 */
export type Probe = (lane: Lane) => Promise<CallOutcome>;

interface ProbeDependencies {
  /** The probe takes a turn like any call. */
  readonly limiter: Pick<RateLimiter, 'run'>;
  /** Reads the environment's `probePath`. @param deadlineAtMs on the clock of `now` */
  readonly get: (deadlineAtMs: number) => Promise<ThrottleResponse>;
  /** How long a probe may take in all, its turn included. Milliseconds. */
  readonly timeoutMs: number;
  readonly now?: () => number;
}

/** Nobody's: the gateway stands in the line beside the tenants. */
const tenant = '';

export function createProbe({
  limiter,
  get,
  timeoutMs,
  now = () => performance.now(),
}: ProbeDependencies): Probe {
  return (lane) => {
    const deadlineAtMs = now() + timeoutMs; // kept by the shaper, and by the transport
    return limiter
      .run({ lane, tenant, deadlineAtMs }, () => get(deadlineAtMs))
      .then(({ status }) => classifyProbeStatus(status), classifyError);
  };
}
