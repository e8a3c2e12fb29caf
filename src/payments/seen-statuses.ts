/**
 * Stores each change of a transaction status that an answer of the bank shows: behind the request, once a second. While the database is
 * unreachable, the newest changes are kept in memory.
 */

import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Operation } from '../pis/operations.ts';
import { identitiesOf } from '../request/identities.ts';
import type { PisResponse, RoutedRequest } from '../request/messages.ts';
import { contentOf, transactionStatusIn } from '../request/read-content.ts';
import type { Stage } from '../request/stage.ts';
import type { PaymentHistoryTable, SeenBy, SeenStatus } from '../store/payment-history.ts';

/** The last status of so many payments is remembered, so that an unchanged one costs nothing. */
const maxRemembered = 100_000;
/** What waits for the database, about 300 bytes each, and how many of the oldest ones are given up if there are more. */
const maxWaiting = 20_000;
const maxForgotten = 1_000;
/** So many are stored with one statement: SQLite takes 2 ms for them, for which requests wait. */
const maxBatch = 100;

/** A text of the bank that is no code is not stored. */
const statusCode = /^[A-Z]{4}$/;

interface Waiting extends SeenStatus {
  /** Milliseconds of `performance.now()`. */
  readonly seenAtMs: number;
}

export type SeenStatuses = ReturnType<typeof createSeenStatuses>;

export function createSeenStatuses(table: Pick<PaymentHistoryTable, 'insertStatuses'>) {
  // `max` would reserve all memory at once.
  const last = new LRUCache<string, string>({ maxSize: maxRemembered, sizeCalculation: () => 1 });
  let waiting: Waiting[] = [];
  let flushing: Promise<void> | undefined;

  function note(seen: SeenStatus): void {
    const key = keyOf(seen);
    if (last.get(key) === seen.status) return;
    last.set(key, seen.status);
    waiting.push({ ...seen, seenAtMs: performance.now() });
    if (waiting.length > maxWaiting) waiting.splice(0, maxForgotten).forEach(forget);
  }

  /** The next answer with this status is noted again. */
  const forget = (seen: SeenStatus): void => {
    last.delete(keyOf(seen));
  };

  async function store(batch: readonly Waiting[]): Promise<void> {
    const nowMs = performance.now();
    const refused = await table.insertStatuses(
      batch.map(({ seenAtMs, ...seen }) => ({ ...seen, ageMs: nowMs - seenAtMs })),
    );
    for (const index of refused.keys()) {
      const seen = batch[index];
      if (seen) forget(seen);
    }
  }

  async function storeAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, maxBatch);
      try {
        await store(batch);
      } catch {
        return;
      }
      const stored = new Set(batch);
      waiting = waiting.filter((seen) => !stored.has(seen));
      await setImmediate(); // requests are served in between: SQLite answers in the same turn of the event loop
    }
  }

  return {
    /**
     * Notes the status that an answer of the bank shows, if it shows one. Never throws. A cancellation that needs no authorisation ends with
     * 204 and no body: the payment is cancelled then (Implementation Guidelines 1.3, payment cancellation request).
     */
    noteShown(seen: Omit<SeenStatus, 'status'>, response: PisResponse): void {
      if (seen.seenBy === 'cancellation' && response.status === 204) note({ ...seen, status: 'CANC' });
      const content = contentOf(response);
      const noteIn = (read: Awaited<typeof content>) => {
        const status = transactionStatusIn(read);
        if (status !== undefined && statusCode.test(status)) note({ ...seen, status });
      };
      if (content instanceof Promise) void content.then(noteIn);
      else noteIn(content);
    },

    /** To be called every second, and at the end. Never rejects: the next call tries again. */
    flush(): Promise<void> {
      flushing ??= storeAll().finally(() => {
        flushing = undefined;
      });
      return flushing;
    },
  };
}

const keyOf = ({ paymentId, environment }: SeenStatus) => JSON.stringify([paymentId, environment]);

/**
 * Notes the statuses that the bank answers. An initiation is not among them: its status is noted when its payment is stored.
 *
 * @param isPoll whether these are reads of the gateway itself
 */
export function noteStatuses(
  statuses: Pick<SeenStatuses, 'noteShown'>,
  isPoll = false,
): Stage<RoutedRequest> {
  return (request, next) => {
    const { operation } = request;
    const { paymentId } = operation;
    const seenBy = isPoll ? 'poll' : seenByOf(operation);
    if (seenBy === undefined || paymentId === undefined) return next(request);
    return next(request).then((response) => {
      if (response.status > 299) return response;
      const environment = identitiesOf(request).environmentIdOf(request.environment.name);
      const requestId = isPoll ? undefined : request.requestId;
      statuses.noteShown({ paymentId, environment, seenBy, requestId }, response);
      return response;
    });
  };
}

function seenByOf({ name, readsStatus, showsStatus }: Operation): SeenBy | undefined {
  if (readsStatus) return 'status read';
  if (showsStatus === 'transactionStatus') return 'payment read';
  if (name === 'cancelPayment') return 'cancellation';
  return name === 'updatePayment' ? 'update' : undefined;
}
