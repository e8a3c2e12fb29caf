/** What a request may cost, by kind. The counts do not depend on the machine or on its load. */

/** `cachedFinalStatus`: a status that cannot change any more, so that the instance may answer without Redis. */
export type RequestKind = 'post' | 'get' | 'cachedStatus' | 'cachedFinalStatus';

export interface Budget {
  /** Name of the request in tables. */
  readonly title: string;
  /** Promises that the code of `src/` creates for one request that runs alone. */
  readonly promises: number;
  /** Timers that the code of `src/` arms, with a reused connection to the bank. */
  readonly timers: number;
  /** Trips to the database that the request waits for, one after the other. */
  readonly databaseTrips: number;
  /** The same to Redis. */
  readonly redisTrips: number;
  /** KiB allocated beyond those of the baseline for the same request. */
  readonly extraKiB: number;
  /** KiB that reach V8's old generation, under load. */
  readonly promotedKiB: number;
  readonly baseline: 'proxy' | 'answer';
}

export const budgets: Readonly<Record<RequestKind, Budget>> = {
  post: {
    title: 'POST of a payment',
    promises: 20,
    timers: 1,
    databaseTrips: 3, // claim; mark as sending; response
    redisTrips: 1, // permit and quota together
    extraKiB: 40,
    promotedKiB: 2,
    baseline: 'proxy',
  },
  get: {
    title: 'GET of a payment',
    promises: 10,
    timers: 1,
    databaseTrips: 1, // the environment of the payment
    redisTrips: 2, // permit and quota together; the status that it shows
    extraKiB: 12,
    promotedKiB: 1,
    baseline: 'proxy',
  },
  cachedStatus: {
    title: 'cached status',
    promises: 4,
    timers: 0,
    databaseTrips: 1, // the environment of the payment
    redisTrips: 1, // cached document and quota together
    extraKiB: 8,
    promotedKiB: 1,
    baseline: 'answer',
  },
  cachedFinalStatus: {
    title: 'cached final status',
    promises: 4,
    timers: 0,
    databaseTrips: 1,
    redisTrips: 1,
    extraKiB: 8,
    promotedKiB: 1,
    baseline: 'answer',
  },
};

export const requestKinds: readonly RequestKind[] = ['post', 'get', 'cachedStatus', 'cachedFinalStatus'];
