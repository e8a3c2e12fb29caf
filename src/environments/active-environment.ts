/**
 * Which environment new payments go to: one value that all instances share, changed by operators while the gateway runs.
 *
 * The configured one is only the first value. The value carries a version, and the highest version wins: a state that
 * lost it, or came back from an old backup, is given it again by any instance that remembers. It also carries an epoch:
 * a new one tells every instance that the shared state has been emptied meanwhile.
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

/** The shared value. */
export type ActiveRecord = Readonly<z.output<typeof recordShape>>;

export interface ActiveEnvironment {
  /** The last value known to this instance; `undefined` if it never could read one. */
  known(): ActiveRecord | undefined;
  /**
   * Reads the shared value, and restores it if the state lost it.
   *
   * @throws GatewayError STATE_UNAVAILABLE if the state cannot be reached
   */
  read(): Promise<ActiveRecord>;
  /**
   * Makes this environment the active one, on all instances.
   *
   * @throws GatewayError STATE_UNAVAILABLE if the state cannot be reached; it is not known then whether it was done
   */
  switchTo(environment: string): Promise<{ readonly from: ActiveRecord; readonly to: ActiveRecord }>;
  /** Whether the shared state was emptied, as far as this instance could notice, since it runs. */
  stateWasEmptied(): boolean;
}

/** The shared value, and the very text that stands in the state: only by that can it be replaced. */
interface StoredRecord {
  readonly raw: string;
  readonly record: ActiveRecord;
}

/** @param configured the value that a new installation begins with */
export function createActiveEnvironment(
  { keyValues, pubsub }: Pick<State, 'keyValues' | 'pubsub'>,
  configured: string,
  log: Log,
): ActiveEnvironment {
  let known: ActiveRecord | undefined;
  let emptied = false;
  const recordIn = createParseCache(parseRecord);

  pubsub.subscribe(channel, () => void read().catch(() => {})); // missed or failed: the next regular read sees it

  const read = async () => (await load()).record;

  async function load(): Promise<StoredRecord> {
    const raw = await keyValues.read(key);
    const stored = raw === undefined ? undefined : recordIn(raw);
    if (raw === undefined || !stored || stored.version < (known?.version ?? 0)) return restore(raw);
    return { raw, record: adopt(stored) };
  }

  /** The state holds nothing, or something older than what is known here. */
  async function restore(raw: string | undefined): Promise<StoredRecord> {
    const next: ActiveRecord = {
      environment: known?.environment ?? configured,
      version: known?.version ?? 1,
      epoch: randomUUID(),
    };
    const written = JSON.stringify(next);
    const done = await (raw === undefined
      ? keyValues.writeIfAbsent(key, written)
      : keyValues.replace(key, raw, written));
    return done ? { raw: written, record: adopt(next) } : load();
  }

  function adopt(record: ActiveRecord): ActiveRecord {
    if (known && known.epoch !== record.epoch) {
      emptied = true;
      log('error', 'the shared state was emptied: what it remembered of payments is lost', {
        activeEnvironment: record.environment,
      });
    }
    if (known?.environment !== record.environment) {
      log('info', 'the active environment is known', {
        environment: record.environment,
        version: record.version,
      });
    }
    known = record;
    return record;
  }

  async function change(
    environment: string,
  ): Promise<{ readonly from: ActiveRecord; readonly to: ActiveRecord }> {
    const { raw, record: from } = await load();
    const to = { ...from, environment, version: from.version + 1 };
    if (!(await keyValues.replace(key, raw, JSON.stringify(to)))) return change(environment);
    adopt(to);
    await pubsub.publish(channel, String(to.version)).catch(() => {}); // the others read it every second besides
    return { from, to };
  }

  return { known: () => known, read, switchTo: change, stateWasEmptied: () => emptied };
}

function parseRecord(raw: string): ActiveRecord {
  const result = recordShape.safeParse(parseJson(raw));
  if (result.success) return result.data;
  throw new GatewayError(
    'STATE_UNAVAILABLE',
    `The shared state holds something else under "${key}"; remove it.`,
  );
}

function parseJson(raw: string): unknown {
  try {
    return JSON.parse(raw);
  } catch {
    return undefined;
  }
}
