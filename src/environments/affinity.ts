/**
 * Where each payment was born: every (environment, tenant) in which its id was seen, learnt from the bank's answer to
 * the initiation and never overwritten. Two banks may give the same id; then both are remembered.
 *
 * The shared state is asked every time, for another instance may just have learnt of a second home. What this instance
 * has learnt or read it keeps in memory besides, so that payments it remembers go on while the state is out of reach.
 */

import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { asGatewayError } from '../flow/errors.ts';
import { createOwed } from '../state/owed.ts';
import { parsedOnce } from '../state/parsed-once.ts';
import type { State } from '../state/ports.ts';
import type { Log } from '../telemetry/log.ts';
import {
  type Home,
  type Lasting,
  type PaymentRecord,
  parseRecord,
  withHome,
  writtenRecord,
} from './payment-record.ts';

export interface Affinity {
  /**
   * Every home of a payment id, other tenants' included; none if nobody remembers it.
   *
   * @param tenant who asks: without the state, what this instance remembers is enough only if it names this tenant
   * @throws GatewayError STATE_UNAVAILABLE if this instance does not remember it and cannot ask
   */
  homesOf(paymentId: string, tenant: string): Promise<readonly Home[]>;
  /** Remembers a home, at once in this instance; what the shared state does not take now it is told later. */
  learn(paymentId: string, home: Home, lasts: Lasting): Promise<void>;
  /**
   * Tells the shared state what it has not taken yet, up to the first that it refuses; the next call begins behind that.
   *
   * @throws GatewayError STATE_UNAVAILABLE if it refuses one
   */
  settle(): Promise<void>;
}

interface Lesson {
  readonly key: string;
  readonly home: Home;
  readonly lasts: Lasting;
}

/** How many payments an instance keeps in its own memory: about 300 bytes each. */
const keptPayments = 100_000;
/** A payment in use is renewed this often, or twice as often as it is forgotten. Milliseconds. */
const renewEveryMs = 24 * 3_600_000;
const channel = 'payment';

/** @param rememberForMs how long a payment is remembered after it was last used; standing orders without end */
export function createAffinity(
  { keyValues, announcements }: Pick<State, 'keyValues' | 'announcements'>,
  rememberForMs: number,
  log: Log,
): Affinity {
  const kept = new LRUCache<string, PaymentRecord>({ max: keptPayments });
  const recordIn = parsedOnce(parseRecord);
  /** By payment. */
  const untold = createOwed<readonly Lesson[]>(async (lessons) => {
    for (const lesson of lessons) await tell(lesson);
  });
  announcements.subscribe(channel, (key) => void kept.delete(key)); // what is kept here may lack the new home

  /** Homes are only ever added: what is kept here, or not told yet, joins what the state says. */
  function keep(key: string, record: PaymentRecord): readonly Home[] {
    // Parsed once and joined with nothing: it is the very record that is kept already.
    if (kept.get(key) === record && untold.size() === 0) return record.homes;
    const own = [...(kept.peek(key)?.homes ?? []), ...untoldHomes(key)];
    const joined = own.reduce(
      (sum, home) => withHome(sum, { home, lasts: record.lasts }, record.renewedAt),
      record,
    );
    kept.set(key, joined);
    return joined.homes;
  }

  const untoldHomes = (key: string) => (untold.of(key) ?? []).map(({ home }) => home);

  async function homesOf(paymentId: string, tenant: string): Promise<readonly Home[]> {
    const key = keyOf(paymentId);
    try {
      return await ask(key);
    } catch (thrown) {
      const own = kept.get(key)?.homes ?? [];
      if (own.some((home) => home.tenant === tenant)) return own;
      throw thrown;
    }
  }

  async function ask(key: string): Promise<readonly Home[]> {
    const raw = await keyValues.read(key);
    if (raw === undefined) return kept.get(key)?.homes ?? untoldHomes(key);
    const record = recordIn(raw);
    if (
      record.lasts === 'remembered' &&
      Date.now() - record.renewedAt > Math.min(renewEveryMs, rememberForMs / 2)
    ) {
      const renewed = writtenRecord({ ...record, renewedAt: Date.now() });
      await keyValues.replace(key, raw, renewed, rememberForMs).catch(() => {}); // the next use tries again
    }
    return keep(key, record);
  }

  async function learn(paymentId: string, home: Home, lasts: Lasting): Promise<void> {
    const lesson = { key: keyOf(paymentId), home, lasts };
    keep(lesson.key, withHome(undefined, lesson, Date.now()));
    await tell(lesson).catch((thrown: unknown) => {
      const isFirst = untold.size() === 0; // logged once, not for every payment
      if (untold.size() < keptPayments) untold.add(lesson.key, [...(untold.of(lesson.key) ?? []), lesson]);
      if (!isFirst) return;
      log('error', 'payments are remembered by this instance alone until the shared state takes them', {
        why: reasonOf(asGatewayError(thrown)),
      });
    });
  }

  async function tell(lesson: Lesson): Promise<void> {
    let raw: string | undefined; // as a rule, nobody knows a new payment
    while (!(await told(lesson, raw))) raw = await keyValues.read(lesson.key);
  }

  /** @param raw what the state knows of the payment @returns false if it has come to know something else meanwhile */
  async function told(lesson: Lesson, raw: string | undefined): Promise<boolean> {
    const { key } = lesson;
    const record = withHome(raw === undefined ? undefined : parseRecord(raw), lesson, Date.now());
    const ttlMs = record.lasts === 'endless' ? undefined : rememberForMs;
    const written = writtenRecord(record);
    const done = await (raw === undefined
      ? keyValues.writeIfAbsent(key, written, ttlMs)
      : keyValues.replace(key, raw, written, ttlMs));
    if (!done) return false;
    keep(key, record);
    if (record.homes.length > 1) await announcements.publish(channel, key);
    return true;
  }

  async function settle(): Promise<void> {
    if (untold.size() === 0) return;
    await untold.settle();
    if (untold.size() === 0) log('info', 'the shared state remembers all payments again');
  }

  return { homesOf, learn, settle };
}

/** The error's own words, and what the state said. */
const reasonOf = ({ message, cause }: Error) =>
  cause instanceof Error ? `${message} (${cause.message})` : message;

/** The id itself stays out of the shared state: only its hash is a key. */
function keyOf(paymentId: string): string {
  return `payment:${hash('sha256', paymentId, 'base64url')}`;
}
