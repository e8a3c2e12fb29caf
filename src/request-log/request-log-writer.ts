/**
 * Writes the records of finished requests to the shared state, behind the requests: at most one write per second, and one more for
 * each full chunk. A request never waits for it, and never fails because of it.
 *
 * The records wait in the rings of recent requests, then encoded, until the state accepts them. What the state does not accept
 * before the memory for waiting records is full is not stored, and counted.
 */

import type { LogWrite, RequestLog } from '../state/ports.ts';
import type { LiveStats } from '../telemetry/live-stats.ts';
import { createNameTable } from '../telemetry/name-table.ts';
import type { RecentRequests, RecordEntry, RecordLane } from '../telemetry/recent-requests.ts';
import { createRecordSlots, type RecordSlots } from '../telemetry/record-slots.ts';
import { createErrorCounts } from './error-counts.ts';
import { createMinuteFigures } from './minute-figures.ts';
import { addFingerprints, errorIn, tenantIn } from './read-slot.ts';
import { createRecordEncoder, encoderName, type RecordEncoder } from './record-encoder.ts';
import { chunkIndex, fingerprintOfTenant } from './search-terms.ts';
import { remainingMs, sliceOf } from './slices.ts';
import { createTenantShares, type ShareSettings } from './tenant-shares.ts';

export interface RequestLogWriter {
  /** Writes everything that has ended so far; to be called every second. Never rejects. @returns whether all of it is stored */
  flush(): Promise<boolean>;
}

export interface RecordSettings extends ShareSettings {
  /** Whether TPPs can look up their own requests: only then the index contains what that needs. */
  readonly selfService: boolean;
}

interface WriterDependencies {
  readonly requestLog: Pick<RequestLog, 'append'>;
  readonly recentRequests: Pick<RecentRequests, 'takeNew' | 'onBatch'>;
  readonly liveStats: Pick<LiveStats, 'recent'>;
  /** The name of this instance; new after every start. */
  readonly instance: string;
  readonly settings: () => RecordSettings;
  /** How many tenants there are. */
  readonly tenants: () => number;
  /** Called with the number of records that are not stored. */
  readonly countNotStored: (records: number) => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/** A chunk is written when it has this many records, or at the next flush. */
const recordsPerChunk = 250;
/** While the state is unavailable, chunks with fewer records are not completed: otherwise each would be a write afterwards. */
const minRecordsPerWrite = 100;
/** The index stores a fingerprint of the id and usually one of the payment. */
const indexBytesPerRecord = 10;
/** Of one more fingerprint, for the look-ups of TPPs. */
const ownIdBytes = 4;
/** Numbers of 32 bits in the slot for a record that does not fit into that of the ring. */
const largeSlotSize = 4_096;

/** The counters of a slice: bytes that each tenant uses, how many of its records were not stored, and the writes of each instance. */
export const counterNames = {
  bytes: (tenant: string) => `bytes ${tenant}`,
  notStored: (tenant: string) => `not-stored ${tenant}`,
  writes: (instance: string) => `writes ${instance}`,
} as const;

/** The records of one slice. */
interface OpenSlice {
  readonly slice: number;
  /** Of the encoder. */
  readonly name: string;
  readonly encoder: RecordEncoder;
  /** For a record that does not fit into its slot. */
  readonly largeSlot: RecordSlots;
  /** These five: of the chunk that is not complete. */
  fingerprints: Set<number>;
  bytesByTenant: Map<string, number>;
  records: number;
  firstReceivedMs: number;
  lastReceivedMs: number;
  /** The size of the dictionary in the last write. */
  writtenDictionarySize: number;
}

/** A write that the state has not accepted. Its first counters are those of `bytesByTenant`, its last one is that of the writes. */
interface WaitingWrite {
  readonly slice: number;
  readonly write: LogWrite;
  readonly bytesByTenant: ReadonlyMap<string, number>;
  readonly records: number;
}

export function createRequestLogWriter({
  requestLog,
  recentRequests,
  liveStats,
  instance,
  settings,
  tenants,
  countNotStored,
  now = Date.now,
}: WriterDependencies): RequestLogWriter {
  const shares = createTenantShares(settings, tenants, now());
  const figures = createMinuteFigures(instance);
  const errors = createErrorCounts(instance, now);
  const tenantFingerprints = new Map<string, number>();
  const waiting: WaitingWrite[] = [];
  let open = openSlice(sliceOf(now()), instance);
  let nextWriteNumber = 0;
  /** How often the clock was set back into an earlier slice. */
  let setBack = 0;
  /** The slice of the last accepted write, and how many of its writes were accepted. */
  let accepted = { slice: open.slice, writes: 0 };
  let sending: Promise<void> | undefined;
  recentRequests.onBatch(recordsPerChunk, () => {
    encodeNew();
    if (open.records < recordsPerChunk) return;
    completeWrite();
    void send();
  });

  function fingerprintOf(tenant: string): number {
    const known = tenantFingerprints.get(tenant);
    if (known !== undefined) return known;
    const fingerprint = fingerprintOfTenant(tenant);
    tenantFingerprints.set(tenant, fingerprint);
    return fingerprint;
  }

  /** Takes the new records from the rings. */
  function encodeNew(): void {
    const nowMs = now();
    const slice = sliceOf(nowMs);
    if (slice !== open.slice) {
      if (open.records > 0) completeWrite();
      if (slice < open.slice) setBack += 1;
      open = openSlice(slice, encoderName(instance, setBack));
    }
    let notStored = 0;
    const evicted = recentRequests.takeNew((lane, recordNumber, isChanged, entry) => {
      const slots = slotsOf(entry);
      const slot = entry.slots ? entry.slot : 0;
      const error = slots && !isChanged ? errorIn(slots, slot) : undefined;
      if (error) errors.add(error);
      if (!slots || !encode(slots, slot, lane, recordNumber, isChanged, nowMs)) notStored += 1;
    });
    if (evicted + notStored > 0) countNotStored(evicted + notStored);
  }

  /** `undefined` if the record does not fit into the large slot either. */
  function slotsOf({ slots, record }: RecordEntry): RecordSlots | undefined {
    if (slots) return slots;
    return open.largeSlot.write(0, record) ? open.largeSlot : undefined;
  }

  /** @returns false if the record is not stored */
  function encode(
    slots: RecordSlots,
    slot: number,
    lane: RecordLane,
    recordNumber: number,
    isChanged: boolean,
    nowMs: number,
  ): boolean {
    const tenant = tenantIn(slots, slot);
    if (!shares.admit(tenant, lane, nowMs)) return false;
    const bytes = open.encoder.add(slots, slot, recordNumber, isChanged);
    if (bytes === 0) {
      shares.addNotStored(tenant);
      return false;
    }
    const { selfService } = settings();
    const counted = bytes + indexBytesPerRecord + (selfService ? ownIdBytes : 0);
    shares.add(tenant, counted);
    open.bytesByTenant.set(tenant, (open.bytesByTenant.get(tenant) ?? 0) + counted);
    open.records += 1;
    const receivedAtMs = slots.receivedAtMs(slot);
    open.firstReceivedMs = Math.min(open.firstReceivedMs, receivedAtMs);
    open.lastReceivedMs = Math.max(open.lastReceivedMs, receivedAtMs);
    addFingerprints(open.fingerprints, slots, slot, fingerprintOf(tenant), selfService);
    return true;
  }

  /** Everything that is new becomes one write. */
  function completeWrite(): void {
    const { slice, name, encoder, fingerprints, bytesByTenant, records, firstReceivedMs, lastReceivedMs } =
      open;
    const dictionarySize = encoder.dictionarySize();
    const isDictionaryNew = dictionarySize > open.writtenDictionarySize;
    const write: LogWrite = {
      writer: instance,
      number: nextWriteNumber++,
      ttlMs: 0, // set when it is sent
      chunk: records > 0 ? encoder.takeChunk() : undefined,
      index:
        records > 0
          ? chunkIndex(fingerprints, secondOf(firstReceivedMs), secondOf(lastReceivedMs))
          : new Map(),
      values: [
        ...(isDictionaryNew ? [dictionaryValue(name, encoder)] : []),
        ...figures.takeChanged(),
        ...errors.takeChanged(),
      ],
      counters: [
        ...[...bytesByTenant].map(([tenant, by]) => ({ name: counterNames.bytes(tenant), by })),
        ...[...shares.takeNotStored()].map(([tenant, by]) => ({ name: counterNames.notStored(tenant), by })),
        { name: counterNames.writes(instance), by: 1 },
      ],
    };
    if (write.chunk || write.values.length > 0 || write.counters.length > 1)
      waiting.push({ slice, write, bytesByTenant, records });
    Object.assign(open, emptyChunk());
    open.writtenDictionarySize = dictionarySize;
  }

  /**
   * The state may have lost writes that it had accepted, by a restart or a failover, and with them the dictionary, without which
   * no chunk can be read: the next write contains it again.
   *
   * @param stored how many writes of this instance are in the slice
   */
  function checkForLoss(slice: number, stored: number): void {
    const expected = slice === accepted.slice ? accepted.writes + 1 : 1;
    if (stored < expected && slice === open.slice) open.writtenDictionarySize = 0;
    accepted = { slice, writes: stored };
  }

  /** Sends the waiting writes in their order, until one fails. */
  function send(): Promise<void> {
    sending ??= sendAll().finally(() => {
      sending = undefined;
    });
    return sending;
  }

  async function sendAll(): Promise<void> {
    for (let [first] = waiting; first; [first] = waiting) {
      const { slice, write, bytesByTenant, records } = first;
      const ttlMs = remainingMs(slice, settings().keepFor, now());
      let totals: readonly number[] = [];
      if (ttlMs > 0) {
        try {
          totals = await requestLog.append(slice, { ...write, ttlMs });
        } catch {
          return; // the next flush sends it again; a repeated write has no effect
        }
      } else {
        countNotStored(records);
      }
      waiting.shift();
      if (ttlMs > 0) checkForLoss(slice, totals.at(-1) ?? 0);
      let index = 0;
      for (const [tenant, bytes] of bytesByTenant)
        shares.onWritten(slice, tenant, bytes, totals[index++] ?? 0);
    }
  }

  return {
    async flush() {
      encodeNew();
      figures.add(liveStats.recent());
      if (waiting.length === 0 || open.records >= minRecordsPerWrite) completeWrite();
      await send();
      if (waiting.length === 0 && open.records > 0) {
        // The new records had to wait for a write that was in progress.
        completeWrite();
        await send();
      }
      return waiting.length === 0;
    },
  };
}

const secondOf = (ms: number) => Math.floor(ms / 1_000);

const openSlice = (slice: number, name: string): OpenSlice => ({
  slice,
  name,
  encoder: createRecordEncoder(name),
  largeSlot: createRecordSlots(1, createNameTable(), largeSlotSize),
  ...emptyChunk(),
  writtenDictionarySize: 0,
});

const emptyChunk = () => ({
  fingerprints: new Set<number>(),
  bytesByTenant: new Map<string, number>(),
  records: 0,
  firstReceivedMs: Number.POSITIVE_INFINITY,
  lastReceivedMs: 0,
});

const dictionaryValue = (name: string, encoder: RecordEncoder) =>
  ({ group: 'dictionaries', name, value: encoder.dictionary() }) as const;
