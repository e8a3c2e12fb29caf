/**
 * The instances that have run in the last hour, in the shared state: an instance that starts finds out which ones have ended
 * before. Each running instance writes its last report every few minutes, and another report when it or another one ends.
 */

import type { Journals } from '../state/ports.ts';
import { parseRosterEntry, type RosterEntry } from './fleet-messages.ts';

export interface FleetRoster {
  /** @throws GatewayError STATE_UNAVAILABLE */
  add(entry: RosterEntry): Promise<void>;
  /** The last entry of each instance; one that has ended remains ended. @throws GatewayError STATE_UNAVAILABLE */
  read(): Promise<readonly RosterEntry[]>;
}

const hourMs = 3_600_000;
const keyOf = (hour: number) => `fleet:${hour}`;

/** @param now milliseconds since 1970 */
export function createFleetRoster(journals: Journals, now: () => number = Date.now): FleetRoster {
  const currentHour = () => Math.floor(now() / hourMs);
  return {
    add: (entry) => journals.append(keyOf(currentHour()), [JSON.stringify(entry)], 2 * hourMs),
    async read() {
      const hour = currentHour();
      const texts = await Promise.all([journals.read(keyOf(hour - 1)), journals.read(keyOf(hour))]);
      const last = new Map<string, RosterEntry>();
      for (const text of texts.flat()) {
        const entry = parseRosterEntry(text);
        if (!entry) continue;
        const { id } = entry.report;
        if (last.get(id)?.status !== 'stopped') last.set(id, entry);
      }
      return [...last.values()];
    },
  };
}
