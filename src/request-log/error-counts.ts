/** How often each error occurred in each minute, on one instance: as one value of the request log for each minute. */

import { z } from 'zod';
import { parseStored } from '../state/parse-stored.ts';
import type { LogValue } from '../state/ports.ts';
import { minuteName, minuteOf, secondsPerMinute } from './minute-figures.ts';

/** One error: what failed for whom, and how often. */
export interface ErrorCount {
  /** The code of an error that the gateway generated; `null` for an error response of the bank. */
  readonly code: string | null;
  readonly client: string | null;
  /** As in the records: see `recordedTenantOf`. */
  readonly tenant: string | null;
  readonly operation: string | null;
  readonly environment: string | null;
  /** The status of an error response of the bank. */
  readonly bankStatus: number | null;
  readonly count: number;
  /** The end of the last one: milliseconds since 1970. */
  readonly lastAtMs: number;
  /** Of the last one. */
  readonly xRequestId: string;
}

export interface ErrorCounts {
  /** Counts one occurrence. @param error with `count: 1` */
  add(error: ErrorCount): void;
  /** The values that have changed since the last call. */
  takeChanged(): readonly LogValue[];
}

/** Different errors in one minute. More are not counted, so that one instance stores at most about 50 KB a minute. */
const maxErrors = 200;

/** @param now milliseconds since 1970 */
export function createErrorCounts(instance: string, now: () => number = Date.now): ErrorCounts {
  /** By the beginning of the minute: seconds since 1970. */
  const minutes = new Map<number, Map<string, ErrorCount>>();
  let changed = new Set<number>();
  return {
    add(error) {
      const at = minuteOf(Math.floor(error.lastAtMs / 1_000));
      const counts = minutes.get(at) ?? new Map<string, ErrorCount>();
      minutes.set(at, counts);
      const key = keyOf(error);
      const known = counts.get(key);
      if (!known && counts.size >= maxErrors) return;
      counts.set(key, known ? mergeErrors(known, error) : error);
      changed.add(at);
    },
    takeChanged() {
      const values = [...changed].map((at): LogValue => {
        const errors = [...(minutes.get(at)?.values() ?? [])];
        const value = Buffer.concat([header, Buffer.from(JSON.stringify(errors))]);
        return { group: 'errors', name: minuteName(at, instance), value };
      });
      changed = new Set();
      for (const at of minutes.keys()) if ((at + 2 * secondsPerMinute) * 1_000 < now()) minutes.delete(at);
      return values;
    },
  };
}

/** Two counts of the same error. */
export function mergeErrors(one: ErrorCount, other: ErrorCount): ErrorCount {
  const { lastAtMs, xRequestId } = one.lastAtMs > other.lastAtMs ? one : other;
  return { ...one, count: one.count + other.count, lastAtMs, xRequestId };
}

/** Equal for the same error. */
export const keyOf = ({ code, client, tenant, operation, environment, bankStatus }: ErrorCount): string =>
  JSON.stringify([code, client, tenant, operation, environment, bankStatus]);

/** The first byte of a value is the version of its format. */
const header = Buffer.of(1);

const name = z.string().nullable();
const errorList = z.array(
  z.object({
    code: name,
    client: name,
    tenant: name,
    operation: name,
    environment: name,
    bankStatus: z.number().nullable(),
    count: z.number(),
    lastAtMs: z.number(),
    xRequestId: z.string(),
  }),
);

/** @returns none if the bytes are no value of this version */
export function decodeErrors(value: Buffer): readonly ErrorCount[] {
  if (!value.subarray(0, header.length).equals(header)) return [];
  return parseStored(errorList, value.subarray(header.length).toString()) ?? [];
}
