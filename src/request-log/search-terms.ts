/**
 * What the index of the request log contains: 32 bits of a hash of each X-Request-ID, payment, tenant and error, and, for the
 * look-ups of TPPs, of each X-Request-ID together with its tenant. A hit is only a hint: the record itself decides.
 */

import type { HashWords } from '../request/payment-hash.ts';
import { lowerCaseBit } from '../telemetry/record-slots.ts';

/** How many buckets the index has, a power of two: a search reads one of them for each slice. */
const bucketCount = 16;

/** This bucket contains two numbers for each chunk: the first and the last second in which its requests were received. */
export const timeBucket = bucketCount;

export const bucketOf = (fingerprint: number): number => fingerprint & (bucketCount - 1);

/** @param bytes contain an `X-Request-ID` in latin1, in any letter case, from `start` to `end` */
export function fingerprintOfId(bytes: Buffer, start: number, end: number): number {
  let hash = fnvOffset;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ ((bytes[at] ?? 0) | lowerCaseBit), fnvPrime);
  return mixBits(hash);
}

/** FNV-1a hardly mixes the last characters of a text; the finalizer of MurmurHash3 (fmix32) does. */
function mixBits(hash: number): number {
  const once = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
  return twice ^ (twice >>> 16); // signed: V8 stores other numbers of 32 bits as objects
}

const fnvOffset = 0x811c9dc5;
const fnvPrime = 0x01000193;

export const fingerprintOfPayment = ([high]: HashWords): number => high;

/**
 * The id of a request of one tenant: an id that other tenants use is not found.
 *
 * @param id     a fingerprint of `fingerprintOfId`
 * @param tenant a fingerprint of `fingerprintOfTenant`
 */
export const fingerprintOfOwnId = (id: number, tenant: number): number =>
  mixBits(Math.imul(id, fnvPrime) ^ tenant);

/** @param tenant as in the records: see `recordedTenantOf` */
export const fingerprintOfTenant = (tenant: string): number => fingerprintOfText(`tenant ${tenant}`);

/** Whether a response is an error of the bank. */
export const isBankError = (servedFrom: string, status: number): boolean =>
  servedFrom === 'bank' && status >= minErrorStatus;

const minErrorStatus = 400;

/** Matches every error. */
export const anyError = 'any';

/** @param error a code, the status of an error response of the bank, or `any` */
export const fingerprintOfError = (error: string): number => fingerprintOfText(`error ${error}`);

function fingerprintOfText(text: string): number {
  const bytes = Buffer.from(text);
  let hash = fnvOffset;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, fnvPrime);
  return mixBits(hash);
}

/**
 * What a chunk adds to the index, by bucket.
 *
 * @param first the first second in which one of its requests was received, and `last` the last one: seconds since 1970
 */
export function chunkIndex(
  fingerprints: ReadonlySet<number>,
  first: number,
  last: number,
): ReadonlyMap<number, Buffer> {
  const groups = new Map<number, number[]>([[timeBucket, [first, last]]]);
  for (const fingerprint of fingerprints) {
    const bucket = bucketOf(fingerprint);
    const group = groups.get(bucket);
    if (group) group.push(fingerprint);
    else groups.set(bucket, [fingerprint]);
  }
  return new Map([...groups].map(([bucket, group]) => [bucket, Buffer.from(Int32Array.from(group).buffer)]));
}
