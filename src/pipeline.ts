/**
 * READ FIRST. The pipeline: the stages of a request, from the public API to the bank.
 *
 * Each stage passes the request on to the next one, with what it has added, and sees the response or the error.
 * docs/architecture/lifecycle.md explains the order.
 */

import {
  type ChooseEnvironmentDependencies,
  chooseEnvironment,
  prefetchActiveEnvironment,
} from './environments/choose-environment.ts';
import { enforceIdempotency, type IdempotencyDependencies } from './idempotency/enforce-idempotency.ts';
import { type IdentifyTenantDependencies, identifyTenant } from './identities/identify-tenant.ts';
import type { PisRequest } from './request/messages.ts';
import { type Handler, startPipeline } from './request/stage.ts';
import { rewriteUrls, updatePublicUrl } from './rewriting/rewrite-urls.ts';
import { cacheStatus, type StatusCache } from './status-cache/cache-status.ts';
import { observe, type StartTrace } from './telemetry/observe.ts';
import type { RequestObserver } from './telemetry/request-record.ts';
import { callUpstream, type Upstream } from './upstream/call-upstream.ts';

export interface PipelineDependencies
  extends Omit<ChooseEnvironmentDependencies, 'prefetchStatus'>,
    IdentifyTenantDependencies {
  readonly observer: Required<RequestObserver>;
  /** `undefined` if requests are not traced. */
  readonly startTrace: StartTrace | undefined;
  readonly idempotency: IdempotencyDependencies;
  readonly statusCache: StatusCache;
  /** Base URL of the gateway for TPPs, for the links in responses. */
  readonly publicUrl: string;
  readonly segment: string;
  readonly upstreamFor: (environment: string) => Upstream;
}

export function createPipeline(dependencies: PipelineDependencies): Handler<PisRequest> {
  const routing = { ...dependencies, prefetchStatus: dependencies.statusCache.prefetch };
  return startPipeline<PisRequest>()
    .use(observe(dependencies.observer, dependencies.startTrace))
    .use(identifyTenant(dependencies))
    .use(updatePublicUrl(dependencies.publicUrl, dependencies.segment))
    .use(prefetchActiveEnvironment(routing)) // in the same tick as the claim
    .use(enforceIdempotency(dependencies.idempotency))
    .use(chooseEnvironment(routing)) // from here on, request.environment is known
    .use(cacheStatus(dependencies.statusCache))
    .use(rewriteUrls(dependencies.publicUrl, dependencies.segment))
    .endWith(callUpstream(dependencies.upstreamFor));
}
