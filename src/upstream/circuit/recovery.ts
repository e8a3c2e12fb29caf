/** Probes the bank while a circuit is open: after a pause that doubles with each failure, and never with a payment. */

import type { Lane } from '../../pis/operations.ts';
import type { ThrottleResponse } from '../shaping/adaptive-rate.ts';
import type { RateLimiter } from '../shaping/rate-limiter.ts';
import { classifyProbeError, classifyProbeStatus, type ProbeOutcome } from './classify-outcome.ts';

const maxPauseMs = 120_000;
/** Pause before another attempt if the probe could not be sent. */
const retryMs = 1_000;

export interface Recovery {
  /** Schedules the next probe. @returns milliseconds until then */
  start(): number;
  /** Resets the pause to its first length, after a successful call. */
  reset(): void;
  close(): void;
}

interface RecoveryDependencies {
  readonly openForMs: number;
  /** Never rejects. */
  readonly probe: () => Promise<ProbeOutcome>;
  /** Whether operators have stopped all calls, probes included. */
  readonly isHeldOpen: () => boolean;
  readonly onProbeStart: () => void;
  readonly onProbeResult: (outcome: 'success' | 'failure') => void;
}

export function createRecovery({
  openForMs,
  probe,
  isHeldOpen,
  onProbeStart,
  onProbeResult,
}: RecoveryDependencies): Recovery {
  let nextPauseMs = openForMs;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  async function attempt(): Promise<void> {
    if (isHeldOpen()) return scheduleAttempt(retryMs);
    onProbeStart();
    const outcome = await probe();
    if (isClosed) return;
    if (outcome === 'neutral') scheduleAttempt(retryMs);
    else onProbeResult(outcome);
  }

  function scheduleAttempt(inMs: number): void {
    if (isClosed) return;
    timer = setTimeout(attempt, inMs);
    timer.unref();
  }

  return {
    start() {
      const pauseMs = nextPauseMs;
      nextPauseMs = Math.min(pauseMs * 2, maxPauseMs);
      scheduleAttempt(pauseMs);
      return pauseMs;
    },
    reset() {
      nextPauseMs = openForMs;
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

/**
 * Sends a GET of the gateway's own to the bank. Never rejects, and settles in bounded time.
 *
 * @param lane the lane of the circuit
 * @returns `neutral` if the probe could not be sent
 */
export type CircuitProbe = (lane: Lane) => Promise<ProbeOutcome>;

interface ProbeDependencies {
  /** A probe takes a permit like any other call. */
  readonly limiter: Pick<RateLimiter, 'run'>;
  /** Reads the environment's `probePath`. @param deadlineAtMs on the clock of `now` */
  readonly get: (deadlineAtMs: number) => Promise<ThrottleResponse>;
  /** Longest duration of a probe in milliseconds, including the wait for its permit. */
  readonly timeoutMs: number;
  readonly now?: () => number;
}

/** In the queue and the concurrency slots, the probes count as a tenant of their own. */
const probeTenant = '';

export function createProbe({
  limiter,
  get,
  timeoutMs,
  now = () => performance.now(),
}: ProbeDependencies): CircuitProbe {
  return (lane) => {
    const deadlineAtMs = now() + timeoutMs; // enforced by the rate limiter and by the transport
    return limiter
      .run({ lane, tenant: probeTenant, deadlineAtMs }, () => get(deadlineAtMs))
      .then(({ status }) => classifyProbeStatus(status), classifyProbeError);
  };
}
