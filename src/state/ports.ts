/** The interface of the shared state. Memory, SQLite and Redis implement it; one contract suite tests all of them. */

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
}

/**
 * Sets of strings. A set never expires, and only `remove` removes a member.
 *
 * Every operation touches one key. A key holds either a set or a value. A member is text, like a value.
 */
export interface Sets {
  /**
   * Adds a member if it is absent.
   *
   * @throws GatewayError STATE_UNAVAILABLE (here and in every operation) as `KeyValues` does; the change may still have
   *   taken effect
   */
  add(key: string, member: string): Promise<void>;
  /** Removes a member if it is present. */
  remove(key: string, member: string): Promise<void>;
  /** All members, in any order; empty if the set does not exist. */
  members(key: string): Promise<readonly string[]>;
}

/** Rate and size of a token bucket. */
export interface BucketRate {
  /** Permits per second in the long run. */
  readonly perSecond: number;
  /** Permits that an idle bucket can issue at once. */
  readonly burst: number;
}

/** Token buckets that all instances share. They run on the clock of the store. */
export interface TokenBuckets {
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

/** One shared state: a store with its four interfaces. */
export interface State {
  readonly keyValues: KeyValues;
  readonly sets: Sets;
  readonly tokenBuckets: TokenBuckets;
  readonly pubsub: PubSub;
  /**
   * Opens the store and checks that it keeps what is written to it.
   *
   * Returns although the store cannot be reached; it then goes on trying to connect.
   *
   * @throws Error that says what to change, if the store can be reached but may lose data
   */
  open(): Promise<void>;
  /** What is wrong with the state, as a sentence; `undefined` if nothing is. */
  problem(): string | undefined;
  close(): Promise<void>;
}
