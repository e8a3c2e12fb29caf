/**
 * READ FIRST. The one straight way of a request, from the door to the bank, and of the answer back.
 *
 * Each stage gets a value, may hand a richer one to the next, and sees the answer or the error come back.
 * Why in this order: docs/architecture/lifecycle.md.
 */

import { chooseEnvironment, type EnvironmentFacts } from './environments/choose-environment.ts';
import type { PisRequest } from './flow/messages.ts';
import { enter, type Handler } from './flow/stage.ts';
import { type Guard, guardDuplicates } from './idempotency/guard-duplicates.ts';
import { rewriteUrls } from './rewriting/rewrite-urls.ts';
import { cacheStatus, type StatusCache } from './status-cache/cache-status.ts';
import type { Observer } from './telemetry/decision.ts';
import { type BeginTrace, observe } from './telemetry/observe.ts';
import { callUpstream, type Upstream } from './upstream/call-upstream.ts';

/** What the stages work with, each made once by the gateway. */
export interface Parts extends EnvironmentFacts {
  /** Told what became of every request. */
  readonly observer: Required<Observer>;
  /** If requests are traced. */
  readonly beginTrace: BeginTrace | undefined;
  readonly guard: Guard;
  readonly statusCache: StatusCache;
  /** Where TPP systems reach the gateway; stands in every link that goes out. */
  readonly publicUrl: string;
  readonly segment: string;
  readonly upstreamTo: (environment: string) => Upstream;
}

/** The line of one gateway. */
export const pipeline = (parts: Parts): Handler<PisRequest> =>
  enter<PisRequest>()
    .through(observe(parts.observer, parts.beginTrace))
    .through(guardDuplicates(parts.guard))
    .through(chooseEnvironment(parts)) // from here on, request.environment is known
    .through(cacheStatus(parts.statusCache))
    .through(rewriteUrls(parts.publicUrl, parts.segment))
    .arrive(callUpstream(parts.upstreamTo));
