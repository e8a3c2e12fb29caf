/** The few members of opossum that circuit.ts uses; the package brings no types of its own. */

declare module 'opossum' {
  import type { EventEmitter } from 'node:events';

  interface Options {
    readonly timeout: false;
    /** Milliseconds until it half-opens by itself. */
    readonly resetTimeout: number;
    /** Opens above this, never at it. */
    readonly errorThresholdPercentage: number;
    /** Does not open while there were fewer calls than these in the window. */
    readonly volumeThreshold: number;
    readonly rollingCountTimeout: number;
    readonly rollingCountBuckets: number;
    readonly rollingPercentilesEnabled: false;
    readonly enableSnapshots: false;
    /** Moves the window on by one bucket with each event `rotate`. */
    readonly rotateBucketController: EventEmitter;
  }

  class CircuitBreaker<Arguments extends unknown[]> {
    constructor(action: (...all: Arguments) => Promise<void>, options: Options);
    fire(...all: Arguments): Promise<void>;
    open(): void;
    close(): void;
    on(event: 'open', listener: () => void): this;
    shutdown(): void;
    readonly stats: { readonly failures: number; readonly fires: number };
  }
  export = CircuitBreaker;
}
