/**
 * The polls of an environment use at most a share of its rate. Polls that are due wait for their permits in a queue: those that a TPP
 * waits for come first, and tenants take turns.
 */

import { setTimeout } from 'node:timers/promises';
import { createLinkedList, type LinkedList } from '../request/linked-list.ts';
import type { BucketRate, TokenBuckets } from '../state/ports.ts';

export interface PollBudget {
  /**
   * Waits for a permit.
   *
   * @param isWanted whether the poll is still needed when its turn comes
   * @returns false if the poll must not be sent: it is not wanted any more, this instance is busy (except for `changed`), or the
   *   shared state is unavailable
   */
  take(poll: DuePoll, isWanted: () => boolean): Promise<boolean>;
  /** Passes a permit that was not used on to the next poll of the environment that waits. */
  giveBack(environment: string): void;
  /** The polls that wait, by environment. */
  overdue(): readonly { readonly environment: string; readonly count: number }[];
}

export interface DuePoll {
  /** The name of the environment. */
  readonly environment: string;
  readonly tenantId: string;
  readonly urgency: Urgency;
}

/** `changed`: a TPP waits for a status that has changed; `listener`: a TPP waits on an open connection. The most urgent first. */
const urgencies = ['changed', 'listener', 'subscription'] as const;

export type Urgency = (typeof urgencies)[number];

interface PollBudgetDependencies {
  readonly buckets: TokenBuckets;
  /** Calls per second that all polls of an environment may use together. */
  readonly perSecond: (environment: string) => number;
  /** Whether to skip work that can wait: sooner than requests are refused. */
  readonly isBusy: () => boolean;
}

interface QueuedPoll {
  readonly isWanted: () => boolean;
  readonly resolve: (isGranted: boolean) => void;
  unlink: () => boolean;
}

interface TenantPolls {
  readonly polls: LinkedList<QueuedPoll>;
  unlink: () => boolean;
}

/** The tenants with due polls, in round-robin order. */
interface PollQueue {
  readonly byTenant: Map<string, TenantPolls>;
  readonly rotation: LinkedList<TenantPolls>;
}

interface EnvironmentPolls {
  readonly queues: Readonly<Record<Urgency, PollQueue>>;
  size: number;
  isServing: boolean;
  /** Permits that were given back. */
  spare: number;
  /** How many permits are requested at once: more while all of them are granted. */
  atOnce: number;
}

/** Those of which a busy instance sends none. A change is known already, and its listeners ask together. */
const droppedUrgencies: readonly Urgency[] = ['listener', 'subscription'];

/** The shortest wait for the next permit: timers count whole milliseconds. */
const minWaitMs = 1;
/** Permits that are requested at once. */
const maxAtOnce = 16;

export function createPollBudget({ buckets, perSecond, isBusy }: PollBudgetDependencies): PollBudget {
  const environments = new Map<string, EnvironmentPolls>();

  function pollsOf(environment: string): EnvironmentPolls {
    const known = environments.get(environment);
    if (known) return known;
    const queues = { changed: createQueue(), listener: createQueue(), subscription: createQueue() };
    const polls = { queues, size: 0, isServing: false, spare: 0, atOnce: 1 };
    environments.set(environment, polls);
    return polls;
  }

  /** Grants permits until nothing waits. A permit goes to the poll that is first in the queue when it is granted. */
  async function serve(environment: string, polls: EnvironmentPolls): Promise<void> {
    polls.isServing = true;
    while (polls.size > 0) {
      const granted = await waitForPermits(environment, polls);
      if (granted === 0) drop(polls, urgencies);
      else if (isBusy()) drop(polls, droppedUrgencies);
      for (let each = 0; each < granted; each++) dequeueWanted(polls)?.resolve(true);
    }
    polls.spare = 0;
    polls.isServing = false;
  }

  /** @returns how many were granted, at most one for each poll; 0 if the shared state is unavailable */
  async function waitForPermits(environment: string, polls: EnvironmentPolls): Promise<number> {
    for (;;) {
      const spare = Math.min(polls.spare, polls.size);
      polls.spare -= spare;
      if (spare > 0) return spare;
      const wanted = Math.min(polls.atOnce, polls.size);
      const [bucket, rate] = [bucketOf(environment), rateOf(environment)];
      try {
        // Commands of the same tick: the time of one round trip for all of them.
        const results = await Promise.all(Array.from({ length: wanted }, () => buckets.take(bucket, rate)));
        const granted = results.filter(({ taken }) => taken).length;
        polls.atOnce = granted === wanted ? Math.min(2 * wanted, maxAtOnce) : Math.max(1, granted);
        if (granted > 0) return granted;
        const [{ nextPermitMs } = { nextPermitMs: 0 }] = results;
        await setTimeout(Math.max(minWaitMs, Math.ceil(nextPermitMs)), undefined, { ref: false });
      } catch {
        return 0;
      }
    }
  }

  /** A burst of one second, and at least one poll. */
  function rateOf(environment: string): BucketRate {
    const rate = perSecond(environment);
    return { perSecond: rate, burst: Math.max(1, Math.floor(rate)) };
  }

  return {
    take({ environment, tenantId, urgency }, isWanted) {
      if (isBusy() && droppedUrgencies.includes(urgency)) return Promise.resolve(false);
      const polls = pollsOf(environment);
      const { promise, resolve } = Promise.withResolvers<boolean>();
      enqueue(polls.queues[urgency], tenantId, { isWanted, resolve, unlink: () => false });
      polls.size += 1;
      if (!polls.isServing) void serve(environment, polls);
      return promise;
    },
    giveBack(environment) {
      const polls = environments.get(environment);
      if (polls && polls.size > 0) polls.spare += 1;
    },
    overdue: () => Array.from(environments, ([environment, { size }]) => ({ environment, count: size })),
  };
}

const bucketOf = (environment: string) => `bucket:polls:${environment}`;

const createQueue = (): PollQueue => ({ byTenant: new Map(), rotation: createLinkedList() });

function enqueue({ byTenant, rotation }: PollQueue, tenantId: string, poll: QueuedPoll): void {
  const tenant = byTenant.get(tenantId) ?? { polls: createLinkedList(), unlink: () => false };
  byTenant.set(tenantId, tenant);
  if (tenant.polls.size() === 0) tenant.unlink = rotation.append(tenant);
  poll.unlink = tenant.polls.append(poll);
}

/** Resolves the polls before it that are not wanted any more. */
function dequeueWanted(polls: EnvironmentPolls): QueuedPoll | undefined {
  let poll = dequeue(polls);
  for (; poll && !poll.isWanted(); poll = dequeue(polls)) poll.resolve(false);
  return poll;
}

function drop(polls: EnvironmentPolls, dropped: readonly Urgency[]): void {
  for (let poll = dequeue(polls, dropped); poll; poll = dequeue(polls, dropped)) poll.resolve(false);
}

function dequeue(polls: EnvironmentPolls, from: readonly Urgency[] = urgencies): QueuedPoll | undefined {
  for (const urgency of from) {
    const { rotation } = polls.queues[urgency];
    const tenant = rotation.first();
    const poll = tenant?.polls.first();
    if (!tenant || !poll) continue;
    polls.size -= 1;
    poll.unlink();
    tenant.unlink();
    if (tenant.polls.size() > 0) tenant.unlink = rotation.append(tenant); // behind the other tenants
    return poll;
  }
  return undefined;
}
