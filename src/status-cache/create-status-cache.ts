/** Puts the status cache together: what lasts as long as the gateway, and what one configuration makes of it. */

import type { Config } from '../config/schema.ts';
import { createChanges } from '../state/changes.ts';
import type { KeyValues, State } from '../state/ports.ts';
import { createAskBank } from './ask-bank.ts';
import type { StatusCache } from './cache-status.ts';
import { type Clock, createClock } from './clock.ts';
import { createEntries } from './entries.ts';
import { createForget, createForgetting, type Forgetting } from './forgetting.ts';
import { createPlaces, documentKey, type Places } from './place.ts';
import { createStatusReads } from './read-status.ts';
import { createSharedFlights, type SharedFlights } from './shared-flight.ts';

/** What outlives a reload of the configuration. */
export interface LastingStatus {
  readonly keyValues: KeyValues;
  readonly places: Places;
  readonly flights: SharedFlights;
  readonly forgetting: Forgetting;
  readonly now: Clock;
}

/** Which payment is to be forgotten; all of them if none is named. Without an environment, in every one. */
export type Purge = (which: {
  readonly environment?: string | undefined;
  readonly payment?: string | undefined;
}) => Promise<void>;

export function createLastingStatus(
  state: Pick<State, 'keyValues' | 'announcements'>,
  now: Clock = createClock(),
): LastingStatus {
  const places = createPlaces(state);
  const { keyValues, announcements } = state;
  const changes = createChanges(announcements, 'status');
  return {
    keyValues,
    places,
    flights: createSharedFlights(keyValues, changes),
    forgetting: createForgetting({
      forget: createForget(keyValues, changes),
      forgetEverything: places.renew,
    }),
    now,
  };
}

export function createStatusCache(
  { statusCache: settings, environments, idempotency }: Config,
  { keyValues, places, flights, forgetting, now }: LastingStatus,
): StatusCache & { readonly purge: Purge } {
  const { finalTtl, settledTtl, pendingTtlMax, staleTtl } = settings;
  const keptForMs = Math.max(finalTtl, settledTtl, pendingTtlMax, staleTtl);
  const entries = createEntries(keyValues, keptForMs, forgetting.settleOf);
  const askBank = createAskBank({ entries, forgetting, settings, now });

  return {
    enabled: settings.enabled,
    reads: createStatusReads({ places, entries, flights, askBank, forgetting, now }),
    forgetting,
    ifStateFails: idempotency.ifStateFails,
    async purge({ environment, payment }) {
      if (payment === undefined) return places.renew();
      const names = environment === undefined ? environments.all.map(({ name }) => name) : [environment];
      await Promise.all(names.map((name) => forgetting.now(documentKey(name, payment))));
    },
  };
}
