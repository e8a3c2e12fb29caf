/** What the writer reads of a record in its slot: its tenant, the fingerprints for the index, and its error. */

import { idLength, position, type RecordSlots } from '../telemetry/record-slots.ts';
import type { ErrorCount } from './error-counts.ts';
import {
  anyError,
  fingerprintOfError,
  fingerprintOfId,
  fingerprintOfOwnId,
  fingerprintOfPayment,
  isBankError,
} from './search-terms.ts';

/** Empty if it is unknown. */
export const tenantIn = (slots: RecordSlots, slot: number): string => nameAt(slots, slot, position.tenant);

/**
 * Adds the fingerprints of a record.
 *
 * @param tenant    the fingerprint of its tenant
 * @param withOwnId whether its tenant must be able to look it up
 */
export function addFingerprints(
  fingerprints: Set<number>,
  slots: RecordSlots,
  slot: number,
  tenant: number,
  withOwnId: boolean,
): void {
  const { numbers, bytes, size } = slots;
  const start = slot * size;
  const idStart = (start + position.requestId) * 4;
  const id = fingerprintOfId(bytes, idStart, idStart + idLength);
  fingerprints.add(id).add(tenant);
  if (withOwnId) fingerprints.add(fingerprintOfOwnId(id, tenant));
  const high = numbers[start + position.payment] ?? 0;
  const low = numbers[start + position.payment + 1] ?? 0;
  if (high !== 0 || low !== 0) fingerprints.add(fingerprintOfPayment([high, low]));
  const error = nameAt(slots, slot, position.error) || bankErrorIn(slots, slot);
  if (error !== '') fingerprints.add(fingerprintOfError(anyError)).add(fingerprintOfError(error));
}

/** The error of a record, with `count: 1`; `undefined` if it has none. */
export function errorIn(slots: RecordSlots, slot: number): ErrorCount | undefined {
  const code = nameAt(slots, slot, position.error);
  const bankStatus = code === '' ? bankErrorIn(slots, slot) : '';
  if (code === '' && bankStatus === '') return undefined;
  const start = slot * slots.size;
  const durationMs = Math.max(0, slots.numbers[start + position.duration] ?? 0) / 10;
  const idStart = (start + position.requestId) * 4;
  const knownName = (at: number) => nameAt(slots, slot, at) || null;
  return {
    code: code || null,
    client: knownName(position.client),
    tenant: knownName(position.tenant),
    operation: knownName(position.operation),
    environment: knownName(position.environment),
    bankStatus: bankStatus === '' ? null : Number(bankStatus),
    count: 1,
    lastAtMs: Math.floor(slots.receivedAtMs(slot) + durationMs),
    xRequestId: slots.bytes.toString('latin1', idStart, idStart + idLength),
  };
}

/** The status of an error response of the bank, as a search names it; empty for all other records. */
function bankErrorIn(slots: RecordSlots, slot: number): string {
  const status = slots.numbers[slot * slots.size + position.status] ?? 0;
  return isBankError(nameAt(slots, slot, position.servedFrom), status) ? String(status) : '';
}

const nameAt = ({ numbers, names, size }: RecordSlots, slot: number, at: number) =>
  names.nameOf(numbers[slot * size + at] ?? 0);
