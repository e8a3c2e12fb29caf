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
  /** Of whom they are: a bit for each tenant, which a few of many tenants may share. */
  readonly tenants: number;
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
  const tenants = bitOf(request.tenantId);
  return { environment, product: request.product, result, count: 1, tenants, bankMs: Math.round(upstreamMs) };
}

/** An integer has 32 bits; one is the sign. More tenants than this share bits. */
const tenantBits = 31;

function bitOf(tenant: string): number {
  let number = 0;
  for (let index = 0; index < tenant.length; index += 1)
    number = (Math.imul(number, 31) + tenant.charCodeAt(index)) | 0;
  // The finalizer of MurmurHash3: without it, the remainder depends on the last character only, because 31 is also the factor.
  number = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  number = Math.imul(number ^ (number >>> 13), 0xc2b2ae35);
  number = (number ^ (number >>> 16)) >>> 0;
  return 1 << (number % tenantBits);
}

/**
 * How many tenants have probably set these bits: of many tenants, some share a bit (linear counting, Whang et al. 1990).
 *
 * @param tenants as in `InitiationCount`
 */
export function countTenants(tenants: number): number {
  let bits = 0;
  for (let rest = tenants; rest !== 0; rest &= rest - 1) bits += 1;
  const free = Math.max(0.5, tenantBits - bits);
  return tenantBits * Math.log(tenantBits / free);
}

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

/** Adds up counts. Beyond 50 different ones, further codes of the bank are counted as `other`; beyond 100, further products as well. */
export function sumInitiations(all: readonly InitiationCount[]): readonly InitiationCount[] {
  const sums = new Map<string, InitiationCount & { count: number; tenants: number; bankMs: number }>();
  const add = (one: InitiationCount, key: string) => {
    const sum = sums.get(key);
    if (sum) {
      sum.count += one.count;
      sum.tenants |= one.tenants;
      sum.bankMs += one.bankMs;
    } else sums.set(key, { ...one });
  };
  for (const one of all) {
    const key = keyOf(one);
    if (sums.size < maxResults || sums.has(key)) {
      add(one, key);
      continue;
    }
    const ofOtherCode = { ...one, result: one.result.replace(/ .*/, ` ${other}`) };
    const codeKey = keyOf(ofOtherCode);
    if (sums.size < 2 * maxResults || sums.has(codeKey)) add(ofOtherCode, codeKey);
    else {
      const ofOtherProduct = { ...ofOtherCode, product: other };
      add(ofOtherProduct, keyOf(ofOtherProduct));
    }
  }
  return [...sums.values()];
}
