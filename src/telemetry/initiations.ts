/** What became of initiations, by environment and product: whether customers can pay. */

import { type ErrorCode, errorTable } from '../request/errors.ts';
import { bankErrorOf, type RequestRecord } from './request-record.ts';

/** Initiations with the same result. */
export interface InitiationCount {
  /** Empty: the gateway refused them before it was known. */
  readonly environment: string;
  /** Service and product, such as `payments/sepa-credit-transfers`. */
  readonly product: string;
  /**
   * `accepted` by the bank; `failed`: no usable answer, one that leaves open what it has done, 3xx, 429 or 5xx; `blocked` by the gateway,
   * without a fault of the TPP; `tenant-blocked`: the same, for a reason that concerns only this tenant; otherwise the bank has refused
   * them: its status and, if it names one, its code, such as `401 CERTIFICATE_REVOKED`.
   */
  readonly result: string;
  readonly count: number;
  /** How many are of each tenant, by its number, without zeros. A few of many tenants may share a number. */
  readonly tenants: readonly (readonly [number: number, count: number])[];
  /** The sum of their durations at the bank, in milliseconds; 0 if they were not sent. */
  readonly bankMs: number;
}

/** How many different results are counted separately in a second or a minute: a bank may send another code each time. */
const maxResults = 50;
const other = 'other';

/** The errors of the gateway for which the TPP is not to blame, and which are not an answer of the bank. */
const blockingErrors: ReadonlySet<ErrorCode> = new Set([
  'CIRCUIT_OPEN',
  'QUEUE_FULL',
  'QUEUE_TIMEOUT',
  'STATE_UNAVAILABLE',
  'OVERLOADED',
  'INTERNAL',
]);

/** @returns `undefined` for other requests, for repeats that the ledger has answered, and for faults of the TPP that the bank has not seen */
export function initiationOf(record: RequestRecord): InitiationCount | undefined {
  const { request, environment = '', upstreamMs = 0 } = record;
  const result = request?.operation === 'initiatePayment' ? resultOf(record) : undefined;
  if (!request || result === undefined) return undefined;
  const tenants = [[numberOf(request.tenantId), 1]] as const;
  return { environment, product: request.product, result, count: 1, tenants, bankMs: Math.round(upstreamMs) };
}

/** Tenants have the numbers from 0 to 30, so that the bytes of each second are bounded. More tenants than this share numbers. */
export const tenantNumbers = 31;

function numberOf(tenant: string): number {
  let number = 0;
  for (let index = 0; index < tenant.length; index += 1)
    number = (Math.imul(number, 31) + tenant.charCodeAt(index)) | 0;
  // The finalizer of MurmurHash3: without it, the remainder depends on the last character only, because 31 is also the factor.
  number = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  number = Math.imul(number ^ (number >>> 13), 0xc2b2ae35);
  return ((number ^ (number >>> 16)) >>> 0) % tenantNumbers;
}

/** How many tenants probably have so many different numbers: of many tenants, some share one (linear counting, Whang et al. 1990). */
export const estimateTenants = (numbers: number): number =>
  tenantNumbers * Math.log(tenantNumbers / Math.max(0.5, tenantNumbers - numbers));

function resultOf(record: RequestRecord): string | undefined {
  const { error, status, servedFrom, outcome } = record;
  if (error) {
    if (blockingErrors.has(error.code)) return error.isOfTenant ? 'tenant-blocked' : 'blocked';
    return errorTable[error.code].origin === 'aspsp' ? 'failed' : undefined;
  }
  if (servedFrom !== 'bank') return undefined;
  const isUsable = status < 300 || (status >= 400 && status < 500 && status !== 429);
  if (!isUsable || outcome === 'in-doubt') return 'failed';
  const code = bankErrorOf(record);
  return status < 300 && code === undefined ? 'accepted' : [status, code ?? []].flat().join(' ');
}

const keyOf = ({ environment, product, result }: InitiationCount) => `${environment} ${product} ${result}`;

/** A sum that is being computed: the counts of tenants are at their number. */
interface Sum {
  readonly first: InitiationCount;
  readonly tenants: number[];
  count: number;
  bankMs: number;
}

/** Adds up counts. Beyond 50 different ones, further codes of the bank are counted as `other`; beyond 100, further products as well. */
export function sumInitiations(all: readonly InitiationCount[]): readonly InitiationCount[] {
  const sums = new Map<string, Sum>();
  for (const one of all) {
    const key = keyOf(one);
    if (sums.size < maxResults || sums.has(key)) {
      add(sums, key, one);
      continue;
    }
    const ofOtherCode = { ...one, result: one.result.replace(/ .*/, ` ${other}`) };
    const codeKey = keyOf(ofOtherCode);
    if (sums.size < 2 * maxResults || sums.has(codeKey)) add(sums, codeKey, ofOtherCode);
    else {
      const ofOtherProduct = { ...ofOtherCode, product: other };
      add(sums, keyOf(ofOtherProduct), ofOtherProduct);
    }
  }
  return Array.from(sums.values(), ({ first, tenants, count, bankMs }) => ({
    ...first,
    count,
    tenants: pairsOf(tenants),
    bankMs,
  }));
}

function pairsOf(tenants: readonly number[]): InitiationCount['tenants'] {
  const pairs: [number, number][] = [];
  tenants.forEach((count, number) => {
    if (count > 0) pairs.push([number, count]);
  });
  return pairs;
}

function add(sums: Map<string, Sum>, key: string, one: InitiationCount): void {
  let sum = sums.get(key);
  if (!sum) {
    sum = { first: one, tenants: new Array<number>(tenantNumbers).fill(0), count: 0, bankMs: 0 };
    sums.set(key, sum);
  }
  sum.count += one.count;
  sum.bankMs += one.bankMs;
  for (const [number, count] of one.tenants) sum.tenants[number] = (sum.tenants[number] ?? 0) + count;
}
