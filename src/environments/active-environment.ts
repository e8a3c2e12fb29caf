/**
 * The active environment, which receives new payments: a value in the shared state that operators change at run time.
 *
 * The configured environment is only the initial value. The value has a version, and the highest version wins: if the
 * state lost the value or was restored from an old backup, an instance that knows a higher version writes it again. The
 * value also has an epoch: a new epoch means that the shared state was emptied.
 */

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { GatewayError } from '../request/errors.ts';
import { createParseCache } from '../state/parse-cache.ts';
import type { State } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';

const key = 'environment:active';
const channel = 'environment';

const recordShape = z.object({
  environment: z.string(),
  version: z.int().positive(),
  epoch: z.string(),
});

export type ActiveRecord = Readonly<z.output<typeof recordShape>>;

export interface ActiveEnvironment {
  /** The last value that this instance read; `undefined` if it has not read one yet. */
  known(): ActiveRecord | undefined;
  /**
   * Reads the shared value, and restores it if the state lost it.
   *
   * @throws GatewayError STATE_UNAVAILABLE
   */
  read(): Promise<ActiveRecord>;
  /**
   * Makes this environment the active one on all instances.
   *
   * @throws GatewayError STATE_UNAVAILABLE; the environment may have been switched nevertheless
   */
  switchTo(environment: string): Promise<{ readonly from: ActiveRecord; readonly to: ActiveRecord }>;
  /** Whether this instance noticed, since its start, that the shared state was emptied. */
  stateWasEmptied(): boolean;
}

/** The shared value and its stored text, which a compare-and-set needs. */
interface StoredRecord {
  readonly raw: string;
  readonly record: ActiveRecord;
}

/** @param configured the initial value of a new installation */
export function createActiveEnvironment(
  { keyValues, pubsub }: Pick<State, 'keyValues' | 'pubsub'>,
  configured: string,
  log: Log,
): ActiveEnvironment {
  let known: ActiveRecord | undefined;
  let wasEmptied = false;
  const parseOnce = createParseCache(parseRecord);

  pubsub.subscribe(channel, () => void read().catch(() => {})); // the heartbeat reads it again

  function read(): Promise<ActiveRecord> {
    return keyValues.read(key).then((raw) => adoptStored(raw) ?? restore(raw).then(({ record }) => record));
  }

  async function switchTo(
    environment: string,
  ): Promise<{ readonly from: ActiveRecord; readonly to: ActiveRecord }> {
    const { raw, record: from } = await load();
    const to = { ...from, environment, version: from.version + 1 };
    if (!(await keyValues.replace(key, raw, JSON.stringify(to)))) return switchTo(environment);
    adopt(to);
    await pubsub.publish(channel, String(to.version)).catch(() => {}); // the other instances read it every second
    return { from, to };
  }

  async function load(): Promise<StoredRecord> {
    const raw = await keyValues.read(key);
    const record = adoptStored(raw);
    return raw === undefined || !record ? restore(raw) : { raw, record };
  }

  /** @returns `undefined` if there is no stored value, or one of a lower version than this instance knows */
  function adoptStored(raw: string | undefined): ActiveRecord | undefined {
    const stored = raw === undefined ? undefined : parseOnce(key, raw);
    return stored && stored.version >= (known?.version ?? 0) ? adopt(stored) : undefined;
  }

  /** @param stale the stored text, if the state holds a lower version than this instance knows */
  async function restore(stale: string | undefined): Promise<StoredRecord> {
    const next: ActiveRecord = {
      environment: known?.environment ?? configured,
      version: known?.version ?? 1,
      epoch: randomUUID(),
    };
    const raw = JSON.stringify(next);
    const isStored = await (stale === undefined
      ? keyValues.writeIfAbsent(key, raw)
      : keyValues.replace(key, stale, raw));
    return isStored ? { raw, record: adopt(next) } : load();
  }

  function adopt(record: ActiveRecord): ActiveRecord {
    if (known && known.epoch !== record.epoch) {
      wasEmptied = true;
      log('error', 'the shared state was emptied: its records of payments are lost', {
        activeEnvironment: record.environment,
      });
    }
    if (known?.environment !== record.environment) {
      log('info', 'active environment read from the shared state', {
        environment: record.environment,
        environmentVersion: record.version,
      });
    }
    known = record;
    return record;
  }

  return { known: () => known, read, switchTo, stateWasEmptied: () => wasEmptied };
}

function parseRecord(raw: string): ActiveRecord {
  const result = recordShape.safeParse(parseJson(raw));
  if (result.success) return result.data;
  throw new GatewayError(
    'STATE_UNAVAILABLE',
    `The key "${key}" of the shared state has an unexpected value; remove the key.`,
  );
}

function parseJson(raw: string): unknown {
  try {
    return JSON.parse(raw);
  } catch {
    return undefined;
  }
}
