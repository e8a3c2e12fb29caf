/** What the gateway asks of the state that its instances share. In memory, on Redis: one contract, one suite of tests. */

/**
 * Values under names. Every operation touches one key, so that it may live on any node of a cluster.
 *
 * A value is text; half of a surrogate pair comes back as U+FFFD.
 */
export interface KeyValues {
  /**
   * @returns the value, or `undefined` if there is none or it has expired
   * @throws GatewayError STATE_UNAVAILABLE here and in every operation, if the state does not answer in time or refuses
   *   (it is full, say); what should have been written is then perhaps written
   */
  read(key: string): Promise<string | undefined>;
  /** Sets a value whatever was there. @param ttlMs how long it lives (> 0); for ever if left out, here and below */
  write(key: string, value: string, ttlMs?: number): Promise<void>;
  /** Sets a value if there is none. @returns whether it was set */
  writeIfAbsent(key: string, value: string, ttlMs?: number): Promise<boolean>;
  /** Sets a value if what is there is still read as `expected`. @returns whether it was set */
  replace(key: string, expected: string, value: string, ttlMs?: number): Promise<boolean>;
  /** Removes a value, if there is one. */
  remove(key: string): Promise<void>;
}

/**
 * Sets of texts under names, for as long as nobody removes them: a set never expires, and never loses a member.
 *
 * Every operation touches one key. A name belongs to a set or to a value, never to both. A member is text as a value is.
 */
export interface Sets {
  /**
   * Adds a member, if it is not there.
   *
   * @throws GatewayError STATE_UNAVAILABLE here and in every operation, as `KeyValues` do; it is then perhaps added
   */
  add(key: string, member: string): Promise<void>;
  /** Removes a member, if it is there. */
  remove(key: string, member: string): Promise<void>;
  /** Every member, in any order; none if nothing was ever added. */
  members(key: string): Promise<readonly string[]>;
}

/** How fast turns come in a token bucket. */
export interface BucketRate {
  /** Turns a second in the long run. */
  readonly perSecond: number;
  /** Turns that may come at once after a rest. */
  readonly burst: number;
}

/** Turns in a token bucket that several gateway instances share, on the state's clock. */
export interface TokenBuckets {
  /**
   * Books the next free turn, even if it lies in the future.
   *
   * @param bucket    name of the bucket, such as `bucket:production`
   * @param maxWaitMs longest acceptable wait; beyond it nothing is booked
   * @returns milliseconds to wait (0 = go now), or `undefined` if the wait would exceed `maxWaitMs`
   * @throws GatewayError STATE_UNAVAILABLE if the state cannot be reached; nothing is known to be booked
   */
  reserve(bucket: string, rate: BucketRate, maxWaitMs: number): Promise<number | undefined>;
  /**
   * Takes a turn if there is one now, and tells how full the bucket is then.
   *
   * @throws GatewayError STATE_UNAVAILABLE as above
   */
  take(bucket: string, rate: BucketRate): Promise<TakeResult>;
}

/** What came of asking for a turn now. */
export interface TakeResult {
  readonly taken: boolean;
  /** How many turns more could be taken at once. */
  readonly remaining: number;
  /** Milliseconds until the next turn can be taken; 0 = now. */
  readonly nextPermitMs: number;
  /** Milliseconds until the bucket is full. */
  readonly fullInMs: number;
}

/** Short messages to all instances, the sender included; whoever is away misses them, and their order may change. */
export interface PubSub {
  /** @throws GatewayError STATE_UNAVAILABLE if it is not known that anybody can have heard it */
  publish(channel: string, message: string): Promise<void>;
  /** Listens from now on, across reconnections. @param listener must not throw @returns stops listening */
  subscribe(channel: string, listener: (message: string) => void): () => void;
}

/** One place where state is kept. */
export interface State {
  readonly keyValues: KeyValues;
  readonly sets: Sets;
  readonly tokenBuckets: TokenBuckets;
  readonly pubsub: PubSub;
  /**
   * Makes the state ready to be used, and sees whether it may be relied on.
   *
   * Comes back although the state is out of reach: it then goes on trying by itself.
   *
   * @throws Error with a sentence that says what to change, if it is within reach but would forget what it is told
   */
  open(): Promise<void>;
  /** `undefined` while all is well, else what is wrong, in a sentence. */
  problem(): string | undefined;
  close(): Promise<void>;
}
