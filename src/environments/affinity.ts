/**
 * Where each payment was born: every (environment, tenant) in which its id was seen, learnt from the bank's answer to
 * the initiation and never overwritten. Two banks may give the same id; then both are remembered.
 *
 * The shared state is asked every time, for another instance may just have learnt of a second home. What this instance
 * has learnt or read it keeps in memory besides, so that payments it remembers go on while the state is out of reach.
 */

import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { asGatewayError } from '../request/errors.ts';
import { createParseCache } from '../state/parse-cache.ts';
import { createPendingWrites } from '../state/pending-writes.ts';
import type { State } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';
import {
  type AffinityRecord,
  type AffinityRetention,
  type PaymentAffinity,
  parseAffinityRecord,
  serializeAffinityRecord,
  withAffinity,
} from './affinity-record.ts';

export interface AffinityStore {
  /**
   * Every home of a payment id, other tenants' included; none if nobody remembers it.
   *
   * @param tenant who asks: without the state, what this instance remembers is enough only if it names this tenant
   * @throws GatewayError STATE_UNAVAILABLE if this instance does not remember it and cannot ask
   */
  environmentsOf(paymentId: string, tenant: string): Promise<readonly PaymentAffinity[]>;
  /** Remembers a home, at once in this instance; what the shared state does not take now it is told later. */
  recordEnvironment(paymentId: string, home: PaymentAffinity, lasts: AffinityRetention): Promise<void>;
  /**
   * Tells the shared state what it has not taken yet, up to the first that it refuses; the next call begins behind that.
   *
   * @throws GatewayError STATE_UNAVAILABLE if it refuses one
   */
  flush(): Promise<void>;
}

interface PendingRecord {
  readonly key: string;
  readonly home: PaymentAffinity;
  readonly lasts: AffinityRetention;
}

/** How many payments an instance keeps in its own memory: about 300 bytes each. */
const maxStoredPayments = 100_000;
/** A payment in use is renewed this often, or twice as often as it is forgotten. Milliseconds. */
const renewEveryMs = 24 * 3_600_000;
const channel = 'payment';

/** @param rememberForMs how long a payment is remembered after it was last used; standing orders without end */
export function createAffinityStore(
  { keyValues, pubsub }: Pick<State, 'keyValues' | 'pubsub'>,
  rememberForMs: number,
  log: Log,
): AffinityStore {
  const stored = new LRUCache<string, AffinityRecord>({ max: maxStoredPayments });
  const recordIn = createParseCache(parseAffinityRecord);
  /** By payment. */
  const pending = createPendingWrites<readonly PendingRecord[]>(async (lessons) => {
    for (const lesson of lessons) await write(lesson);
  });
  pubsub.subscribe(channel, (key) => void stored.delete(key)); // what is kept here may lack the new home

  /** Homes are only ever added: what is kept here, or not told yet, joins what the state says. */
  function store(key: string, record: AffinityRecord): readonly PaymentAffinity[] {
    // Parsed once and joined with nothing: it is the very record that is kept already.
    if (stored.get(key) === record && pending.size() === 0) return record.affinities;
    const own = [...(stored.peek(key)?.affinities ?? []), ...pendingAffinities(key)];
    const joined = own.reduce(
      (sum, home) => withAffinity(sum, { home, lasts: record.retention }, record.renewedAt),
      record,
    );
    stored.set(key, joined);
    return joined.affinities;
  }

  const pendingAffinities = (key: string) => (pending.get(key) ?? []).map(({ home }) => home);

  async function homesOf(paymentId: string, tenant: string): Promise<readonly PaymentAffinity[]> {
    const key = keyOf(paymentId);
    try {
      return await readShared(key);
    } catch (thrown) {
      const own = stored.get(key)?.affinities ?? [];
      if (own.some((home) => home.tenant === tenant)) return own;
      throw thrown;
    }
  }

  async function readShared(key: string): Promise<readonly PaymentAffinity[]> {
    const raw = await keyValues.read(key);
    if (raw === undefined) return stored.get(key)?.affinities ?? pendingAffinities(key);
    const record = recordIn(raw);
    if (
      record.retention === 'remembered' &&
      Date.now() - record.renewedAt > Math.min(renewEveryMs, rememberForMs / 2)
    ) {
      const renewed = serializeAffinityRecord({ ...record, renewedAt: Date.now() });
      await keyValues.replace(key, raw, renewed, rememberForMs).catch(() => {}); // the next use tries again
    }
    return store(key, record);
  }

  async function learn(paymentId: string, home: PaymentAffinity, lasts: AffinityRetention): Promise<void> {
    const lesson = { key: keyOf(paymentId), home, lasts };
    store(lesson.key, withAffinity(undefined, lesson, Date.now()));
    await write(lesson).catch((thrown: unknown) => {
      const isFirst = pending.size() === 0; // logged once, not for every payment
      if (pending.size() < maxStoredPayments)
        pending.add(lesson.key, [...(pending.get(lesson.key) ?? []), lesson]);
      if (!isFirst) return;
      log('error', 'payments are remembered by this instance alone until the shared state takes them', {
        why: reasonOf(asGatewayError(thrown)),
      });
    });
  }

  async function write(lesson: PendingRecord): Promise<void> {
    let raw: string | undefined; // as a rule, nobody knows a new payment
    while (!(await tryWrite(lesson, raw))) raw = await keyValues.read(lesson.key);
  }

  /** @param raw what the state knows of the payment @returns false if it has come to know something else meanwhile */
  async function tryWrite(lesson: PendingRecord, raw: string | undefined): Promise<boolean> {
    const { key } = lesson;
    const record = withAffinity(raw === undefined ? undefined : parseAffinityRecord(raw), lesson, Date.now());
    const ttlMs = record.retention === 'endless' ? undefined : rememberForMs;
    const written = serializeAffinityRecord(record);
    const done = await (raw === undefined
      ? keyValues.writeIfAbsent(key, written, ttlMs)
      : keyValues.replace(key, raw, written, ttlMs));
    if (!done) return false;
    store(key, record);
    if (record.affinities.length > 1) await pubsub.publish(channel, key);
    return true;
  }

  async function settle(): Promise<void> {
    if (pending.size() === 0) return;
    await pending.flush();
    if (pending.size() === 0) log('info', 'the shared state remembers all payments again');
  }

  return { environmentsOf: homesOf, recordEnvironment: learn, flush: settle };
}

/** The error's own words, and what the state said. */
const reasonOf = ({ message, cause }: Error) =>
  cause instanceof Error ? `${message} (${cause.message})` : message;

/** The id itself stays out of the shared state: only its hash is a key. */
function keyOf(paymentId: string): string {
  return `payment:${hash('sha256', paymentId, 'base64url')}`;
}
