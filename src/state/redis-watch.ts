/** Looks at Redis a few times a second. The looks also keep a silent connection honest: a frozen server is noticed. */

import { setTimeout as pass } from 'node:timers/promises';
import { reasonOf } from './redis-answer.ts';
import { type Health, healthOf, type Looks } from './redis-health.ts';

const pauseMs = 250;

/** The watch over one Redis, of whatever kind. */
export interface RedisWatch {
  /** Begins to look, and comes back when Redis answers or `ms` have passed. */
  begin(ms: number): Promise<Health>;
  /** What is wrong, as far as the last look found; nothing before the first. */
  trouble(): string | undefined;
  /** Looks again at once: something happened. */
  lookNow(): void;
  /** Takes note of what the connection complains of. */
  complain(error: unknown): void;
  end(): void;
}

/**
 * A watch that has not begun.
 *
 * @param onChange told whenever trouble begins, ends, or becomes of another kind; all is well at first
 */
export function watchRedis(looks: Looks, onChange: (trouble: string | undefined) => void): RedisWatch {
  const rest = createPause();
  let health: Health = { kind: 'well' };
  let complaint: string | undefined;
  let ended = false;

  const look = async () => {
    const found = await healthOf(looks, () => complaint);
    if (found.kind === 'well') complaint = undefined;
    return found;
  };
  const note = (found: Health) => {
    const changed = found.kind !== health.kind;
    health = found;
    if (changed && !ended) onChange(troubleIn(found));
  };
  const goOn = async () => {
    while (!ended) {
      note(await look());
      await rest.take(pauseMs);
    }
  };

  return {
    async begin(ms) {
      const deadline = performance.now() + ms;
      let found = await look();
      while (found.kind === 'out of reach' && performance.now() < deadline) {
        await pass(20);
        found = await look();
      }
      if (found.kind === 'unfit') return found; // refused: nothing begins
      note(found);
      void goOn();
      return found;
    },
    trouble: () => troubleIn(health),
    lookNow: rest.cut,
    complain(error) {
      complaint = reasonOf(error);
    },
    end() {
      ended = true;
      rest.cut();
    },
  };
}

const troubleIn = (health: Health) => (health.kind === 'well' ? undefined : health.trouble);

/** A pause that can be cut short. */
function createPause() {
  let cut = () => {};
  return {
    cut: () => cut(),
    take: (ms: number) =>
      new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        cut = () => {
          clearTimeout(timer);
          resolve();
        };
      }),
  };
}
