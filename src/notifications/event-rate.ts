/** How often something happens. */

export interface EventRate {
  count(): void;
  /** The events per second, in the last seconds that have ended. */
  perSecond(): number;
}

/**
 * @param windowSeconds how many seconds the rate covers
 * @param now           milliseconds
 */
export function createEventRate(windowSeconds: number, now: () => number = Date.now): EventRate {
  /** By second of the clock, modulo the number of slots: the present second, and those of the window. */
  const slots = Array.from({ length: windowSeconds + 1 }, () => ({ second: 0, count: 0 }));

  return {
    count() {
      const second = secondOf(now());
      const slot = slots[second % slots.length];
      if (!slot) return;
      if (slot.second !== second) Object.assign(slot, { second, count: 0 });
      slot.count += 1;
    },
    perSecond() {
      const present = secondOf(now());
      const isInWindow = ({ second }: { readonly second: number }) =>
        second < present && second >= present - windowSeconds;
      return slots.filter(isInWindow).reduce((sum, { count }) => sum + count, 0) / windowSeconds;
    },
  };
}

const secondOf = (ms: number) => Math.floor(ms / 1_000);
