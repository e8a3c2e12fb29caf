/** The interface of the state that accelerates: what instances share in Redis, or what one has in its memory. One contract suite tests both. */

/**
 * A key-value store. Every operation touches one key, so the keys may be spread over the nodes of a cluster.
 *
 * A value is text; a lone surrogate is read back as U+FFFD.
 */
export interface KeyValues {
  /**
   * @returns the value, or `undefined` if there is none or it has expired
   * @throws GatewayError STATE_UNAVAILABLE (here and in every operation) if the store does not answer in time or refuses,
   *   for example because it is full; a write may still have taken effect
   */
  read(key: string): Promise<string | undefined>;
  /** Sets a value unconditionally. @param ttlMs time to live, > 0; without it the value never expires (here and below) */
  write(key: string, value: string, ttlMs?: number): Promise<void>;
  /** Sets a value if there is none. @returns whether it was set */
  writeIfAbsent(key: string, value: string, ttlMs?: number): Promise<boolean>;
  /** Compare-and-set: sets a value if the current one equals `expected`. @returns whether it was set */
  replace(key: string, expected: string, value: string, ttlMs?: number): Promise<boolean>;
  /** Removes a value if there is one. */
  remove(key: string): Promise<void>;
  /** Compare-and-delete: removes a value if the current one equals `expected`. @returns whether it was removed */
  removeIf(key: string, expected: string): Promise<boolean>;
}

/** Rate and size of a token bucket. */
export interface BucketRate {
  /** Permits per second in the long run. */
  readonly perSecond: number;
  /** Permits that an idle bucket can issue at once. */
  readonly burst: number;
  /**
   * The furthest time ahead for which the settings allow reservations: the longest wait of any caller plus the time in
   * which the bucket fills. Milliseconds; by default computed from this call. If a bucket is reserved further ahead, the
   * clock of the store was set back, and the bucket is corrected (token-bucket.ts).
   */
  readonly longestAheadMs?: number | undefined;
}

/** Token buckets: of this process alone if the state is in memory or in a file, or else shared by all instances. */
export type TokenBuckets = LocalTokenBuckets | SharedTokenBuckets;

/** Token buckets of this process. They run on a monotonic clock, and never fail. */
export interface LocalTokenBuckets {
  readonly isShared: false;
  /** As `SharedTokenBuckets.reserve`. */
  reserve(bucket: string, rate: BucketRate, maxWaitMs: number): number | undefined;
  /** As `SharedTokenBuckets.take`. */
  take(bucket: string, rate: BucketRate): TakeResult;
}

/** Token buckets that all instances share. They run on the clock of the store. */
export interface SharedTokenBuckets {
  readonly isShared: true;
  /**
   * Reserves the next free permit, even if it lies in the future.
   *
   * @param bucket    name of the bucket, such as `bucket:production`
   * @param maxWaitMs longest acceptable wait; beyond it nothing is reserved
   * @returns milliseconds to wait (0 = now), or `undefined` if the wait would exceed `maxWaitMs`
   * @throws GatewayError STATE_UNAVAILABLE if the store cannot be reached; nothing is known to be reserved
   */
  reserve(bucket: string, rate: BucketRate, maxWaitMs: number): Promise<number | undefined>;
  /**
   * Takes a permit if one is available now, and returns the fill level of the bucket.
   *
   * @throws GatewayError STATE_UNAVAILABLE as above
   */
  take(bucket: string, rate: BucketRate): Promise<TakeResult>;
  /**
   * Takes several permits, and leases some of them: leased permits may be used later.
   *
   * The permits in the bucket and all leased ones together never exceed `burst`, so that rate and burst also limit the use of
   * leased permits.
   *
   * @throws GatewayError STATE_UNAVAILABLE as above
   */
  lease(bucket: string, rate: BucketRate, request: PermitRequest): Promise<GrantedPermits>;
  /**
   * Gives back the permit of a request without a lease that was granted exactly one. If the bucket was used since, the permit is
   * lost instead: the waits that were computed since then depend on it.
   *
   * @param rate  at which the permit was granted
   * @param after `GrantedPermits.after`
   * @returns whether it was given back
   * @throws GatewayError STATE_UNAVAILABLE as above
   */
  giveBack(bucket: string, rate: BucketRate, after: string): Promise<boolean>;
}

export interface PermitRequest {
  /** As many as are available now are granted, up to this number. */
  readonly wanted: number;
  /** If none is available now, the next one is reserved, unless its wait would be longer. 0: none is reserved. */
  readonly maxWaitMs: number;
  /**
   * Permits that are available now are added to this lease, except `immediate` ones. These, and permits without a lease, must be
   * used immediately.
   */
  readonly lease?: PermitLease | undefined;
}

/** The unused permits of an instance. The lease ends `permitLeaseMs` after the last request that contains it. */
export interface PermitLease {
  /** Identifies the lease. */
  readonly id: string;
  /** How many permits of it remain, without those that are returned now; all others have been used. */
  readonly held: number;
  /** How many unused permits go back to the bucket. */
  readonly returned: number;
  /** How many of the wanted permits are for calls that wait now. They count as used. */
  readonly immediate: number;
}

/** How long a lease of permits lasts, in milliseconds. Longer than the time-out of Redis: a slow answer still contains usable permits. */
export const permitLeaseMs = 1_000;

export interface GrantedPermits {
  readonly granted: number;
  /** Milliseconds until the granted permits may be used, or until the next one is available if none is granted; 0 = now. */
  readonly waitMs: number;
  /** The state of the bucket after this request, for `giveBack`. */
  readonly after: string;
}

/** The result of `TokenBuckets.take`. */
export interface TakeResult {
  readonly taken: boolean;
  /** Permits that can still be taken now. */
  readonly remaining: number;
  /** Milliseconds until the next permit is available; 0 = now. */
  readonly nextPermitMs: number;
  /** Milliseconds until the bucket is full. */
  readonly fullInMs: number;
}

/** Short messages to all instances, including the sender. A disconnected instance misses them; their order can change. */
export interface PubSub {
  /** @throws GatewayError STATE_UNAVAILABLE if the message may not have been delivered to any instance */
  publish(channel: string, message: string): Promise<void>;
  /** Subscribes from now on, across reconnections. @param listener must not throw @returns unsubscribes */
  subscribe(channel: string, listener: (message: string) => void): () => void;
}

/** One shared state: a store with its interfaces. */
export interface State {
  readonly keyValues: KeyValues;
  readonly tokenBuckets: TokenBuckets;
  readonly pubsub: PubSub;
  /**
   * Opens the store and checks that it can be used.
   *
   * Returns although the store cannot be reached; it then goes on trying to connect.
   *
   * @throws Error that says what to change, if the store can be reached but not be used, for example because it may evict keys
   */
  open(): Promise<void>;
  /** What is wrong with the state, as a sentence; `undefined` if nothing is. */
  problem(): string | undefined;
  /** Problems of a state that can be read and written, such as a nearly full memory: one sentence each. */
  warnings(): readonly string[];
  close(): Promise<void>;
}
