/** Counts the deviations of checked messages in the memory of this instance, until they are written to the shared report. */

import type { Deviation, Effect, Level, Rule } from '../contract/deviation.ts';
import type { OperationName } from '../pis/operations.ts';

export type Direction = 'request' | 'response';

/** Which messages were checked against which contract. */
export interface CheckScope {
  /** The environment of the messages. */
  readonly environment: string;
  /** The hash of the contract. */
  readonly hash: string;
  /** Whether the environment of the messages has this contract. */
  readonly isOwn: boolean;
  readonly direction: Direction;
}

export interface CheckedMessage {
  readonly operation: OperationName;
  readonly client: string;
  readonly requestId: string;
  /** When it was received: whole milliseconds since 1970. */
  readonly atMs: number;
  /**
   * For a check against the contract of another environment: the hash of the environment's own contract, if both refuse the request.
   * Such a request has never worked, so it is no difference between the environments.
   */
  readonly alsoRefusedBy?: string | undefined;
}

/** How often clients had one deviation. */
export interface CountedDeviation extends CheckScope {
  readonly operation: OperationName;
  readonly path: string;
  readonly rule: Rule;
  readonly level: Level;
  readonly effect: Effect;
  readonly client: string;
  /** As in `CheckedMessage`. */
  readonly alsoRefusedBy?: string | undefined;
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly firstMs: number;
  readonly lastMs: number;
  /** `X-Request-ID` of the last message. */
  readonly requestId: string;
}

export interface CountedMessages extends CheckScope {
  readonly operation: OperationName;
  readonly client: string;
  readonly count: number;
  readonly firstMs: number;
}

/**
 * Why a message was not checked: the sample leaves the answer out; the process was busy, or the queue or the thread was full; the
 * check failed. `not-counted`: it was checked, and had more different deviations than are counted.
 */
export type SkipReason = 'sampled-out' | 'shed' | 'failed' | 'not-counted';

export interface SkippedMessages {
  readonly environment: string;
  readonly direction: Direction;
  readonly reason: SkipReason;
  readonly count: number;
}

/** Everything that was counted since the last call of `take`. */
export interface CountedChecks {
  readonly deviations: readonly CountedDeviation[];
  readonly messages: readonly CountedMessages[];
  readonly skipped: readonly SkippedMessages[];
}

export interface DeviationCounts {
  add(scope: CheckScope, message: CheckedMessage, deviations: readonly Deviation[]): void;
  skip(environment: string, direction: Direction, reason: SkipReason): void;
  /** @returns `undefined` if there is nothing new */
  take(): CountedChecks | undefined;
}

/** How many different deviations are counted between two calls of `take`, by schema path, rule, level, effect and client. */
const maxDeviations = 5_000;

interface DeviationCount {
  readonly deviation: Deviation;
  readonly alsoRefusedBy: string | undefined;
  count: number;
  readonly firstMs: number;
  lastMs: number;
  requestId: string;
}

/** The messages of one scope, operation and client. */
interface MessageCount {
  readonly scope: CheckScope;
  readonly operation: OperationName;
  readonly client: string;
  readonly firstMs: number;
  count: number;
  /** By path. */
  readonly deviations: Map<string, DeviationCount[]>;
}

export function createDeviationCounts(): DeviationCounts {
  /** By client and operation: finding a count must not create a key for each message. */
  let clients = new Map<string, Map<OperationName, MessageCount[]>>();
  let skipped = new Map<string, SkippedCounts>();
  let deviationCount = 0;

  function countOf(scope: CheckScope, { operation, client, atMs }: CheckedMessage): MessageCount {
    const operations =
      clients.get(client) ?? addTo(clients, client, new Map<OperationName, MessageCount[]>());
    const counts = operations.get(operation) ?? addTo(operations, operation, []);
    for (const count of counts) if (isSameScope(count.scope, scope)) return count;
    const added = { scope, operation, client, firstMs: atMs, count: 0, deviations: new Map() };
    counts.push(added);
    return added;
  }

  function countDeviation(
    { scope, deviations }: MessageCount,
    deviation: Deviation,
    { atMs, requestId, alsoRefusedBy }: CheckedMessage,
  ): void {
    const { rule, path, level, effect } = deviation;
    const ofPath = deviations.get(path) ?? addTo(deviations, path, []);
    for (const known of ofPath) {
      if (known.deviation.rule !== rule || known.alsoRefusedBy !== alsoRefusedBy) continue;
      // These depend on the payment service as well: a harmful deviation must not be counted as another one.
      if (known.deviation.level !== level || known.deviation.effect !== effect) continue;
      known.count += 1;
      known.lastMs = atMs;
      known.requestId = requestId;
      return;
    }
    if (deviationCount === maxDeviations) {
      skip(scope.environment, scope.direction, 'not-counted');
      return;
    }
    deviationCount += 1;
    ofPath.push({ deviation, alsoRefusedBy, count: 1, firstMs: atMs, lastMs: atMs, requestId });
  }

  function skip(environment: string, direction: Direction, reason: SkipReason): void {
    const counts = skipped.get(environment) ?? addTo(skipped, environment, noneSkipped());
    counts[direction][reason] += 1;
  }

  return {
    add(scope, message, deviations) {
      const counted = countOf(scope, message);
      counted.count += 1;
      for (const deviation of deviations) countDeviation(counted, deviation, message);
    },
    skip,
    take() {
      if (clients.size + skipped.size === 0) return undefined;
      const all = [...clients.values()].flatMap((operations) => [...operations.values()].flat());
      const taken = {
        messages: all.map(({ scope, operation, client, firstMs, count }) => ({
          ...scope,
          operation,
          client,
          firstMs,
          count,
        })),
        deviations: all.flatMap(({ scope, operation, client, deviations }) =>
          [...deviations.values()]
            .flat()
            .map(({ deviation, ...counts }) => ({ ...scope, operation, client, ...deviation, ...counts })),
        ),
        skipped: [...skipped].flatMap(([environment, counts]) => skippedIn(environment, counts)),
      };
      clients = new Map();
      skipped = new Map();
      deviationCount = 0;
      return taken;
    },
  };
}

type SkippedCounts = Record<Direction, Record<SkipReason, number>>;

function noneSkipped(): SkippedCounts {
  const none = { 'sampled-out': 0, shed: 0, failed: 0, 'not-counted': 0 };
  return { request: { ...none }, response: { ...none } };
}

const directions = ['request', 'response'] as const;
const skipReasons = ['sampled-out', 'shed', 'failed', 'not-counted'] as const;

function skippedIn(environment: string, counts: SkippedCounts): SkippedMessages[] {
  return directions.flatMap((direction) =>
    skipReasons
      .map((reason) => ({ environment, direction, reason, count: counts[direction][reason] }))
      .filter(({ count }) => count > 0),
  );
}

function addTo<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): Value {
  map.set(key, value);
  return value;
}

/** The same object, except after a reload. */
const isSameScope = (one: CheckScope, other: CheckScope) =>
  one === other ||
  (one.hash === other.hash &&
    one.environment === other.environment &&
    one.direction === other.direction &&
    one.isOwn === other.isOwn);
