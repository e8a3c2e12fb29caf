/** Puts the status cache together: what lasts as long as the gateway, and what one configuration makes of it. */

import type { Config } from '../config/schema.ts';
import type { Announcements, KeyValues } from '../state/ports.ts';
import type { Verdict } from './cache-answer.ts';
import type { StatusCache } from './cache-status.ts';
import { createEntries } from './entries.ts';
import { createLateForgetting, type LateForgetting } from './late-forgetting.ts';
import { createPlaces, documentKey, type Places } from './place.ts';
import { createStatusReads } from './read-status.ts';
import { createSharedFlights, type SharedFlights } from './shared-flight.ts';

interface Shared {
  readonly keyValues: KeyValues;
  readonly announcements: Announcements;
}

/** What outlives a reload of the configuration. */
export interface LastingStatus {
  readonly shared: Shared;
  readonly places: Places;
  readonly flights: SharedFlights;
  readonly late: LateForgetting;
}

/** Which payment is to be forgotten; all of them if none is named. Without an environment, in every one. */
export type Purge = (which: {
  readonly environment?: string | undefined;
  readonly payment?: string | undefined;
}) => Promise<void>;

export function createLastingStatus(shared: Shared): LastingStatus {
  return {
    shared,
    places: createPlaces(shared),
    flights: createSharedFlights(shared),
    late: createLateForgetting(),
  };
}

/** Longer than any call can take: a read that began before a payment was forgotten must find that it was. Milliseconds. */
const longestCallMs = 15 * 60_000;

export function createStatusCache(
  { statusCache: settings, environments, idempotency }: Config,
  { shared, places, flights, late }: LastingStatus,
  count: (verdict: Verdict, environment: string) => void,
): StatusCache & { readonly purge: Purge } {
  const { finalTtl, settledTtl, pendingTtlMax, staleTtl } = settings;
  const entries = createEntries(
    shared,
    Math.max(finalTtl, settledTtl, pendingTtlMax, staleTtl, longestCallMs),
  );

  return {
    enabled: settings.enabled,
    reads: createStatusReads({ places, entries, flights, settings, count }),
    forget: entries.forget,
    forgetLater: (key) => late.add(key, () => entries.forget(key)),
    ifStateFails: idempotency.ifStateFails,
    async purge({ environment, payment }) {
      if (payment === undefined) return places.renew();
      const names = environment === undefined ? environments.all.map(({ name }) => name) : [environment];
      await Promise.all(names.map((name) => entries.forget(documentKey(name, payment))));
    },
  };
}
