/** Both clocks and every timer of this process, standing still but when a test lets time pass. */

/** What stands still until `restart`. */
export interface FakeTime {
  /** Takes so long that no timer could fire meanwhile. */
  skip(ms: number): void;
  /** Lets time pass; whoever is called back when a timer fires is waited for by `settle`. */
  advance(ms: number, settle?: () => Promise<void>): Promise<void>;
  /** The machine's own clocks and timers again; what still waits never fires. */
  restore(): void;
}

interface Timer {
  readonly atMs: number;
  readonly fire: () => void;
}

const startMs = Date.parse('2026-01-01T12:00:00Z');

/** Comes back when all that can go on without time passing has gone on. */
export async function settleTasks(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
}

export function installFakeTime(): FakeTime {
  const own = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout };
  const { now } = Date;
  const timers = new Set<Timer>();
  let sinceMs = 1_000_000;

  Object.assign(Date, { now: () => startMs + sinceMs });
  Object.assign(performance, { now: () => sinceMs });
  Object.assign(globalThis, {
    setTimeout(act: (...all: unknown[]) => void, ms: number, ...all: unknown[]) {
      const timer = { atMs: sinceMs + Math.max(1, ms), fire: () => act(...all) };
      timers.add(timer);
      return timer;
    },
    clearTimeout: (timer: Timer) => void timers.delete(timer),
  });

  /** The one that is due first; of equals, the one that was set first. */
  const nextBy = (untilMs: number) => {
    let next: Timer | undefined;
    for (const timer of timers) if (timer.atMs <= untilMs && !(next && next.atMs <= timer.atMs)) next = timer;
    return next;
  };

  return {
    skip(ms) {
      sinceMs += ms;
    },
    async advance(ms, settle = settleTasks) {
      const untilMs = sinceMs + ms;
      for (let next = nextBy(untilMs); next; next = nextBy(untilMs)) {
        timers.delete(next);
        sinceMs = Math.max(sinceMs, next.atMs);
        next.fire();
        await settle();
      }
      sinceMs = Math.max(sinceMs, untilMs);
    },
    restore() {
      Object.assign(globalThis, own);
      Object.assign(Date, { now });
      Reflect.deleteProperty(performance, 'now'); // the prototype's is the machine's
    },
  };
}
