/** The parts of status notifications that outlive a reload of the configuration. */

import type { RequestEvent } from '../request/request-events.ts';
import type { StatusEvents } from '../request/statuses.ts';
import type { State } from '../state/ports.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createEventRate } from './event-rate.ts';
import { createPollBudget, type PollBudget } from './poll-budget.ts';
import { createPaymentPolls, type PaymentPolls } from './poll-payment.ts';
import { createPoller, type Poller } from './poller.ts';
import { createStatusListeners, type StatusListeners } from './status-listeners.ts';
import { createStatusReads, type ResourceReads, type StatusReads } from './status-reads.ts';

export interface NotificationServices {
  readonly statusListeners: StatusListeners;
  readonly paymentPolls: PaymentPolls;
  readonly poller: Poller;
  readonly reads: StatusReads & ResourceReads;
  /** Counts the events of reads that are no requests of a TPP. */
  readonly onReadEvent: (event: RequestEvent, environment: string) => void;
  readonly budget: PollBudget;
  /** Of this instance, now. */
  readonly figures: () => NotificationFigures;
}

/** What this instance reports to the others. */
export interface NotificationFigures {
  /** Status reads that wait for a change, and open streams. */
  readonly waits: number;
  readonly streams: number;
  /** Polls that were sent to the bank, in the last five seconds. */
  readonly pollsPerSecond: number;
  /** Polls that wait for a permit. */
  readonly overduePolls: number;
}

interface NotificationDependencies {
  readonly state: Pick<State, 'keyValues' | 'tokenBuckets'>;
  readonly events: StatusEvents;
  /** Whether to skip work that can wait: sooner than requests are refused. */
  readonly isBusy: () => boolean;
  /** `listen.maxConnections` */
  readonly maxConnections: number;
  readonly metrics: Metrics;
  /** The clock of the status cache. Milliseconds since 1970. */
  readonly now: () => number;
}

/** As long as those of requests in the report of an instance. */
const figureSeconds = 5;

/** The rest of the connections remains for requests that do not wait. */
const connectionShare = 0.5;

export function createNotifications({
  state: { keyValues, tokenBuckets },
  events,
  isBusy,
  maxConnections,
  metrics,
  now,
}: NotificationDependencies): NotificationServices {
  const statusListeners = createStatusListeners(Math.floor(maxConnections * connectionShare));
  const pollRate = createEventRate(figureSeconds);
  function onReadEvent(event: RequestEvent, environment: string): void {
    if (event.what !== 'call') return;
    pollRate.count();
    countCall(metrics, event, environment);
  }
  const reads = createStatusReads(onReadEvent);
  const budget = createPollBudget({
    buckets: tokenBuckets,
    perSecond: (environment) => reads.current?.perSecond(environment) ?? 1,
    isBusy,
  });
  metrics.addGaugeSource('penstock_status_listeners', () =>
    (['wait', 'stream'] as const).map((kind) => ({ labels: { kind }, value: statusListeners.count(kind) })),
  );
  metrics.addGaugeSource('penstock_polls_overdue', () =>
    budget.overdue().map(({ environment, count }) => ({ labels: { environment }, value: count })),
  );
  const paymentPolls = createPaymentPolls({ keyValues, events, reads, metrics });
  const poller = createPoller({ polls: paymentPolls, events, reads, budget, metrics, now });
  return {
    statusListeners,
    reads,
    budget,
    paymentPolls,
    poller,
    onReadEvent,
    figures: () => ({
      waits: statusListeners.count('wait'),
      streams: statusListeners.count('stream'),
      pollsPerSecond: pollRate.perSecond(),
      overduePolls: budget.overdue().reduce((sum, { count }) => sum + count, 0),
    }),
  };
}

/** A poll is no request of a TPP, but its call to the bank counts as any other. */
function countCall(metrics: Metrics, { totalMs }: CallEvent, environment: string): void {
  metrics
    .histogram('penstock_upstream_duration_seconds', { environment, lane: 'status' })
    .observe(totalMs / 1_000);
}

type CallEvent = Extract<RequestEvent, { readonly what: 'call' }>;
