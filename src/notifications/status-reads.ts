/** The status reads of the gateway itself: polls, through the pipeline of the configuration in effect. */

import { asGatewayError, type ErrorCode } from '../request/errors.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';
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

export type PollResult =
  | { readonly kind: 'status'; readonly shown: ShownStatus; readonly response: PisResponse }
  /** The bank or the gateway does not let this caller read the payment; a poll with the same credentials would not either. */
  | { readonly kind: 'refused' }
  /** The bank rejects the poll, which has fewer fields than the read of the TPP: that read may succeed. */
  | { readonly kind: 'rejected' }
  /** A later poll may succeed. */
  | { readonly kind: 'failed' };

export interface StatusReads {
  /** Written by the request handlers, at the start and at a reload. */
  current: PollPipeline | undefined;
  /** Never rejects. */
  read(target: PollTarget): Promise<PollResult>;
}

/** @param onEvent called with the events of polls, which are not requests of a TPP */
export function createStatusReads(onEvent: (event: RequestEvent, environment: string) => void): StatusReads {
  const reads: StatusReads = {
    current: undefined,
    async read(target) {
      const { current } = reads;
      if (!current) return failed;
      const request = pollRequest(target, (event) => onEvent(event, target.environment));
      try {
        const response = await current.handle(request);
        return await resultOf(current.statuses, request, response);
      } catch (thrown) {
        return refusals.has(asGatewayError(thrown).code) ? refused : failed;
      } finally {
        request.permit?.release();
      }
    },
  };
  return reads;
}

async function resultOf(
  { shownBy }: Statuses,
  { environment, ...request }: PisRequest,
  response: PisResponse,
): Promise<PollResult> {
  if ([401, 403, 404].includes(response.status)) return refused;
  if (response.status >= 400 && response.status < 500 && response.status !== 429) return rejected;
  if (response.status !== 200 || response.servedFrom === 'stale-cache' || !environment) return failed;
  const shown = await shownBy({ ...request, environment }, response);
  return shown.code === undefined ? failed : { kind: 'status', shown, response };
}

const refused = { kind: 'refused' } as const;
const rejected = { kind: 'rejected' } as const;
const failed = { kind: 'failed' } as const;

/** The gateway refuses the read because of the caller or its payment. */
const refusals: ReadonlySet<ErrorCode> = new Set([
  ...(['PAYMENT_UNKNOWN', 'ENVIRONMENT_FORBIDDEN', 'ENVIRONMENT_MISMATCH', 'ENVIRONMENT_UNKNOWN'] as const),
]);
