/**
 * READ FIRST. The one straight way of a request, from the door to the bank, and of the answer back.
 *
 * Each stage gets a value, may hand a richer one to the next, and sees the answer or the error come back.
 * Why in this order: docs/architecture/lifecycle.md.
 */

import { type ChooseEnvironmentDependencies, chooseEnvironment } from './environments/choose-environment.ts';
import { enforceIdempotency, type IdempotencyDependencies } from './idempotency/enforce-idempotency.ts';
import type { PisRequest } from './request/messages.ts';
import { type Handler, startPipeline } from './request/stage.ts';
import { rewriteUrls } from './rewriting/rewrite-urls.ts';
import { cacheStatus, type StatusCache } from './status-cache/cache-status.ts';
import { observe, type StartTrace } from './telemetry/observe.ts';
import type { RequestObserver } from './telemetry/request-record.ts';
import { callUpstream, type Upstream } from './upstream/call-upstream.ts';

/** What the stages work with, each made once by the gateway. */
export interface PipelineDependencies extends ChooseEnvironmentDependencies {
  /** Told what became of every request. */
  readonly observer: Required<RequestObserver>;
  /** If requests are traced. */
  readonly beginTrace: StartTrace | undefined;
  readonly idempotency: IdempotencyDependencies;
  readonly statusCache: StatusCache;
  /** Where TPP systems reach the gateway; stands in every link that goes out. */
  readonly publicUrl: string;
  readonly segment: string;
  readonly upstreamFor: (environment: string) => Upstream;
}

/** The line of one gateway. */
export const createPipeline = (parts: PipelineDependencies): Handler<PisRequest> =>
  startPipeline<PisRequest>()
    .use(observe(parts.observer, parts.beginTrace))
    .use(enforceIdempotency(parts.idempotency))
    .use(chooseEnvironment(parts)) // from here on, request.environment is known
    .use(cacheStatus(parts.statusCache))
    .use(rewriteUrls(parts.publicUrl, parts.segment))
    .endWith(callUpstream(parts.upstreamFor));
