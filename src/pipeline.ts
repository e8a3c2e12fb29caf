/**
 * READ FIRST. The pipelines: the stages of a request, from the public API to the bank, one pipeline for each lane.
 *
 * Each stage fills its slots of the request, passes the request on to the next one, and sees the response or the error.
 * docs/architecture/lifecycle.md explains the order.
 */

import { type EnforceContractDependencies, enforceContract } from './contract-guard/enforce-contract.ts';
import { type ReportContractDependencies, reportContract } from './contract-guard/report-contract.ts';
import {
  type ChooseEnvironmentDependencies,
  chooseEnvironment,
  prefetchWithClaim,
} from './environments/choose-environment.ts';
import { enforceIdempotency, type IdempotencyDependencies } from './idempotency/enforce-idempotency.ts';
import { type IdentifyTenantDependencies, identifyTenant } from './identities/identify-tenant.ts';
import { type AwaitStatusDependencies, awaitStatus } from './notifications/await-status.ts';
import { type RenewCredentialsDependencies, renewCredentials } from './notifications/renew-credentials.ts';
import {
  type RequestBankNotificationsDependencies,
  requestBankNotifications,
} from './notifications/request-bank-notifications.ts';
import { type SubscribeDependencies, subscribe } from './notifications/subscribe.ts';
import { noteStatuses, type SeenStatuses } from './payments/seen-statuses.ts';
import type { Lane } from './pis/operations.ts';
import type { PisRequest } from './request/messages.ts';
import { type Handler, startPipeline } from './request/stage.ts';
import type { MapLinksOf } from './rewriting/link-mapper.ts';
import { createUpdatePublicUrl, rewriteUrls, updatePublicUrl } from './rewriting/rewrite-urls.ts';
import { cacheStatus, type StatusCache } from './status-cache/cache-status.ts';
import { observe, type StartTrace } from './telemetry/observe.ts';
import type { RequestObserver } from './telemetry/request-record.ts';
import { callUpstream, type Upstream } from './upstream/call-upstream.ts';

export interface PipelineDependencies
  extends Omit<ChooseEnvironmentDependencies, 'prefetchStatus' | 'noteStatus'>,
    IdentifyTenantDependencies,
    EnforceContractDependencies,
    Omit<ReportContractDependencies, 'contractGuard'> {
  readonly contractGuard: EnforceContractDependencies['contractGuard'] &
    ReportContractDependencies['contractGuard'];
  readonly observer: Required<RequestObserver>;
  /** `undefined` if requests are not traced. */
  readonly startTrace: StartTrace | undefined;
  readonly idempotency: IdempotencyDependencies;
  readonly statusCache: StatusCache;
  readonly seenStatuses: Pick<SeenStatuses, 'noteShown'>;
  readonly notifications: AwaitStatusDependencies;
  readonly webhooks: SubscribeDependencies & RenewCredentialsDependencies;
  readonly bankNotifications: RequestBankNotificationsDependencies;
  /** Base URL of the gateway for TPPs, for the links in responses. */
  readonly publicUrl: string;
  readonly segment: string;
  readonly mapLinksOf: MapLinksOf;
  readonly upstreamFor: (environment: string) => Upstream;
}

export function createPipeline(dependencies: PipelineDependencies): Handler<PisRequest> {
  const {
    idempotency,
    statusCache,
    seenStatuses,
    notifications,
    webhooks,
    bankNotifications,
    publicUrl,
    segment,
    mapLinksOf,
  } = dependencies;
  const routing = routingOf(dependencies);
  const begin = startPipeline<PisRequest>()
    .use(observe(dependencies.observer, dependencies.startTrace))
    .use(identifyTenant(dependencies));

  const pipelines: Readonly<Record<Lane, Handler<PisRequest>>> = {
    write: begin
      .use(prefetchWithClaim(routing)) // shares the round trip of the claim
      .use(enforceIdempotency(idempotency, createUpdatePublicUrl(publicUrl, segment)))
      .use(chooseEnvironment(routing)) // sets request.environment
      .use(enforceContract(dependencies)) // after the ledger: a repeat gets its response before any rule
      .use(subscribe(webhooks)) // to webhooks about the status
      .use(requestBankNotifications(bankNotifications)) // where the bank sends notifications
      .use(cacheStatus(statusCache)) // invalidates before and after
      .use(noteStatuses(seenStatuses)) // for operators
      .use(rewriteUrls(mapLinksOf, publicUrl))
      .use(reportContract(dependencies)) // queues checks of the request and of the bank's response
      .endWith(callUpstream(dependencies.upstreamFor)),
    read: begin
      .use(idempotency.resolveByReads)
      .use(chooseEnvironment(routing))
      .use(enforceContract(dependencies))
      .use(cacheStatus(statusCache)) // records the status that the response shows
      .use(noteStatuses(seenStatuses))
      .use(rewriteUrls(mapLinksOf, publicUrl))
      .use(reportContract(dependencies))
      .endWith(callUpstream(dependencies.upstreamFor)),
    status: begin
      .use(updatePublicUrl(publicUrl, segment)) // a cached status may have links of an earlier configuration
      .use(idempotency.resolveByReads)
      .use(chooseEnvironment(routing))
      .use(enforceContract(dependencies))
      .use(awaitStatus(notifications)) // conditional and waiting reads
      .use(renewCredentials(webhooks)) // with which the status is read for webhooks
      .use(cacheStatus(statusCache))
      .use(noteStatuses(seenStatuses))
      .use(rewriteUrls(mapLinksOf, publicUrl))
      .use(reportContract(dependencies)) // of reads that the cache does not answer
      .endWith(callUpstream(dependencies.upstreamFor)),
  };
  return (request) => pipelines[request.operation.lane](request);
}

/** The status reads of the gateway itself: no TPP has sent them, so they are not observed, and do not wait. */
export function createPollPipeline(dependencies: PipelineDependencies): Handler<PisRequest> {
  const { statusCache, seenStatuses, publicUrl, mapLinksOf } = dependencies;
  return startPipeline<PisRequest>()
    .use(identifyTenant(dependencies))
    .use(chooseEnvironment(routingOf(dependencies)))
    .use(cacheStatus(statusCache))
    .use(noteStatuses(seenStatuses, true))
    .use(rewriteUrls(mapLinksOf, publicUrl))
    .use(reportContract(dependencies, 'responses'))
    .endWith(callUpstream(dependencies.upstreamFor));
}

const routingOf = (dependencies: PipelineDependencies) => ({
  ...dependencies,
  prefetchStatus: dependencies.statusCache.prefetch,
  noteStatus: dependencies.seenStatuses.noteShown,
});
