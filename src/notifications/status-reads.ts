/** The reads of the gateway itself: polls, through the pipeline of the configuration in effect. */

import { retryAfterMs } from '../pis/retry-after.ts';
import { asGatewayError, type ErrorCode } from '../request/errors.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';
import { contentOf } from '../request/read-content.ts';
import type { RequestEvent } from '../request/request-events.ts';
import type { Handler } from '../request/stage.ts';
import type { ShownStatus, Statuses } from '../request/statuses.ts';
import type { ScheduleSettings } from './poll-schedule.ts';
import { type PollTarget, pollRequest } from './poll-target.ts';

/** What polls use of one configuration. */
export interface PollPipeline {
  /** Reads a status: chooses the environment, and uses the cache. */
  readonly handle: Handler<PisRequest>;
  readonly statuses: Statuses;
  readonly schedule: ScheduleSettings;
  /** Calls per second that all polls of an environment may use together. */
  readonly perSecond: (environment: string) => number;
}

/** Why nothing was read. */
export type FailedRead =
  /** The bank or the gateway does not let this caller read the payment; a poll with the same credentials would not either. */
  | { readonly kind: 'refused'; readonly why?: string }
  /** The bank rejects the poll, which has fewer fields than the read of the TPP: that read may succeed. */
  | { readonly kind: 'rejected'; readonly why?: string }
  /** A later poll may succeed. */
  | {
      readonly kind: 'failed';
      readonly why?: string;
      /** How long the bank, or the circuit, asks to wait. Milliseconds. */
      readonly retryAfterMs?: number | undefined;
    };

export type PollResult =
  | { readonly kind: 'status'; readonly shown: ShownStatus; readonly response: PisResponse }
  | FailedRead;

export type JsonResult = { readonly kind: 'json'; readonly json: unknown } | FailedRead;

export interface StatusReads {
  /** Written by the request handlers, at the start and at a reload. */
  current: PollPipeline | undefined;
  /**
   * Never rejects.
   *
   * @param maxCachedAgeMs an older cached status does not answer the poll; by default any that is fresh does
   */
  read(target: PollTarget, maxCachedAgeMs?: number): Promise<PollResult>;
}

/** Reads of other resources of a payment. */
export interface ResourceReads {
  /** Never rejects. */
  readJson(target: PollTarget): Promise<JsonResult>;
}

/** @param onEvent called with the events of polls, which are not requests of a TPP */
export function createStatusReads(
  onEvent: (event: RequestEvent, environment: string) => void,
): StatusReads & ResourceReads {
  async function send<Result>(
    target: PollTarget,
    maxCachedAgeMs: number | undefined,
    resultOf: (pipeline: PollPipeline, request: PisRequest, response: PisResponse) => Promise<Result>,
  ): Promise<Result | FailedRead> {
    const { current } = reads;
    if (!current) return { kind: 'failed', why: 'no configuration' };
    const request = pollRequest(target, (event) => onEvent(event, target.environment), maxCachedAgeMs);
    try {
      const response = await current.handle(request);
      return failureIn(response) ?? (await resultOf(current, request, response));
    } catch (thrown) {
      const { code, headers } = asGatewayError(thrown);
      return refusals.has(code)
        ? { kind: 'refused', why: code }
        : { kind: 'failed', why: code, retryAfterMs: retryAfterMs(headers, Date.now()) };
    } finally {
      request.permit?.release();
    }
  }

  const reads: StatusReads & ResourceReads = {
    current: undefined,
    read: (target, maxCachedAgeMs) => send(target, maxCachedAgeMs, statusIn),
    readJson: (target) => send(target, undefined, jsonIn),
  };
  return reads;
}

function failureIn({ status, servedFrom, headers }: PisResponse): FailedRead | undefined {
  const why = `the bank answered ${status}`;
  if (status === 401 || status === 403 || status === 404) return { kind: 'refused', why };
  if (status >= 400 && status < 500 && status !== 429) return { kind: 'rejected', why };
  if (status === 200 && servedFrom !== 'stale-cache') return undefined;
  return { kind: 'failed', why, retryAfterMs: retryAfterMs(headers, Date.now()) };
}

async function statusIn(
  { statuses: { shownBy } }: PollPipeline,
  { environment, ...request }: PisRequest,
  response: PisResponse,
): Promise<PollResult> {
  if (!environment) return { kind: 'failed', why: 'no environment' };
  const shown = await shownBy({ ...request, environment }, response);
  return shown.code === undefined ? { kind: 'failed', why: noStatus } : { kind: 'status', shown, response };
}

async function jsonIn(_: PollPipeline, __: PisRequest, response: PisResponse): Promise<JsonResult> {
  const content = await contentOf(response);
  return content.kind === 'json' ? { kind: 'json', json: content.json } : { kind: 'failed', why: noStatus };
}

const noStatus = 'the answer of the bank shows no status';

/** The gateway refuses the read because of the caller or its payment. */
const refusals: ReadonlySet<ErrorCode> = new Set([
  ...(['PAYMENT_UNKNOWN', 'ENVIRONMENT_FORBIDDEN', 'ENVIRONMENT_MISMATCH', 'ENVIRONMENT_UNKNOWN'] as const),
]);
