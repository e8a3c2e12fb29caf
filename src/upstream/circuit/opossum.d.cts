/** Types of the few members of opossum that failure-window.ts uses; the package has none of its own. */

declare module 'opossum' {
  import type { EventEmitter } from 'node:events';

  interface Options {
    readonly timeout: false;
    /** Milliseconds until it half-opens automatically. */
    readonly resetTimeout: number;
    /** Opens above this percentage, not at it. */
    readonly errorThresholdPercentage: number;
    /** Stays closed with fewer calls in the window. */
    readonly volumeThreshold: number;
    readonly rollingCountTimeout: number;
    readonly rollingCountBuckets: number;
    readonly rollingPercentilesEnabled: false;
    readonly enableSnapshots: false;
    /** Each `rotate` event slides the window by one bucket. */
    readonly rotateBucketController: EventEmitter;
  }

  class CircuitBreaker {
    constructor(action: () => Promise<void>, options: Options);
    fire(): Promise<void>;
    open(): void;
    close(): void;
    on(event: 'open' | 'failure', listener: () => void): this;
    shutdown(): void;
    readonly opened: boolean;
    readonly status: { increment(count: 'fires' | 'successes'): void };
    readonly stats: { readonly failures: number; readonly fires: number };
  }
  export = CircuitBreaker;
}
