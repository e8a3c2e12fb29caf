/**
 * Ids as the bank spells them. The gateway decodes the ids of a path, and must send them as the bank's own links do: some banks
 * distinguish `a=b` from `a%3Db`. Ids outside of the strict set are valid only if the bank has issued them to the tenant.
 */

import { isStrictId, type Operation, segmentToId } from '../pis/operations.ts';

/** The ids of one payment that the record of the payment must contain. All are path segments, in the spelling of the bank. */
export interface BankIds {
  /** `undefined` if it is `idToSegment` of the payment id. */
  readonly payment?: string | undefined;
  /** Of authorisations: ids outside of the strict set, and ids that the bank does not spell as `idToSegment` does. */
  readonly authorisations: readonly string[];
}

export const noBankIds: BankIds = { authorisations: [] };

/** The end of the path at the bank, from the payment service on. @param ids of the payment; `undefined` if none are recorded */
export function resourceAtBank(operation: Operation, ids: BankIds | undefined): string {
  const { resource, paymentId, authorisationId } = operation;
  if (!ids || paymentId === undefined) return resource;
  const segments = resource.split('/'); // an empty one, service, product, payment id, type, authorisation id
  if (ids.payment !== undefined) segments[3] = ids.payment;
  if (authorisationId !== undefined)
    segments[5] = authorisationSegment(authorisationId, ids) ?? segments[5] ?? '';
  return segments.join('/');
}

/** The recorded spelling of an authorisation id. Searches all of them: at most some hundred. */
export const authorisationSegment = (id: string, { authorisations }: BankIds): string | undefined =>
  authorisations.find((segment) => segmentToId(segment) === id);

/** Whether an id must be recorded, so that the gateway accepts it and sends it in this spelling. */
export const mustBeRecorded = (id: string, segment: string): boolean => !isStrictId(id) || segment !== id;

/** A payment has a handful. Links to further ones are not rewritten. */
export const maxAuthorisations = 50;

/** Answers at the same time may exceed the limit. */
const maxRecorded = 2 * maxAuthorisations;

/**
 * Adds authorisations to what is recorded of a payment. The recorded spellings stay: links with them may have been passed on.
 *
 * @param known `undefined` if the payment is recorded, and the gateway spells all of its ids as the bank does
 * @returns `known` itself if nothing is added
 */
export function mergeBankIds(known: BankIds | undefined, added: BankIds | undefined): BankIds | undefined {
  if (!added) return known;
  const { authorisations, ...rest } = known ?? noBankIds;
  const ids = new Set(authorisations.map(segmentToId));
  const others = added.authorisations.filter((segment) => !ids.has(segmentToId(segment)));
  if (others.length === 0) return known;
  return { ...rest, authorisations: [...authorisations, ...others].slice(0, maxRecorded) };
}
