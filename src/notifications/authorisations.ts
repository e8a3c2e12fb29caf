/** The authorisations of a subscribed payment: how the gateway finds them in responses, and how reads of them change what is stored. */

import { z } from 'zod';
import { isId, type Operation, segmentToId } from '../pis/operations.ts';
import { endsAuthorisation } from '../pis/transaction-status.ts';
import type { PisResponse } from '../request/messages.ts';
import { hrefOf, jsonOf, shortCode } from '../request/read-content.ts';

/** What a subscription stores of an authorisation until its end is reported. Times are milliseconds since 1970. */
export const authorisationShape = z
  .object({
    /** The path segment, such as `cancellation-authorisations`. */
    type: z.string(),
    /** `undefined` if the bank has started it without stating its id: then the gateway reads the list of authorisations. */
    id: z.string().optional(),
    /** The last `scaStatus` that was read. */
    scaStatus: z.string().optional(),
    /** The `scaStatus` that the TPP got in the last message, or in the response that started the authorisation. */
    reported: z.string().optional(),
    /** Since when it has this `scaStatus`. */
    since: z.number(),
  })
  .readonly();

export type Authorisation = z.output<typeof authorisationShape>;

/** An authorisation that a request has started, as far as the response describes it. */
export type StartedAuthorisation = Pick<Authorisation, 'type' | 'id' | 'scaStatus'>;

/** The maximum number of authorisations stored for a payment. Beyond it, the oldest ones are dropped and not reported. */
const maxAuthorisations = 8;

/**
 * The authorisation that a successful write has started: explicitly, or by an initiation or a cancellation after which the bank starts
 * one itself (implicit start).
 */
export async function startedAuthorisationIn(
  operation: Operation,
  response: PisResponse,
): Promise<StartedAuthorisation | undefined> {
  const body = objectIn(await jsonOf(response));
  const links = objectIn(body?._links);
  const scaStatus = scaStatusOf(body);
  const type = authorisationTypeOf(operation);
  if (operation.name !== 'startAuthorisation' && !isStartedImplicitly(scaStatus, links)) return undefined;
  const id = validId(body?.authorisationId) ?? idInLink(hrefOf(links?.scaStatus), type, operation, body);
  return { type, ...(id !== undefined && { id }), ...(scaStatus !== undefined && { scaStatus }) };
}

/** The path segment of the authorisations that a write starts. */
export function authorisationTypeOf({ name, path }: Pick<Operation, 'name' | 'path'>): string {
  const segments = path.split('/');
  if (name === 'startAuthorisation') return segments.at(-1) ?? '';
  if (name === 'updatePsuData') return segments.at(-2) ?? '';
  return name === 'cancelPayment' ? 'cancellation-authorisations' : 'authorisations';
}

/** If the TPP has to start the authorisation itself, the response has links named `startAuthorisation...`, and no `scaStatus`. */
function isStartedImplicitly(scaStatus: string | undefined, links: JsonObject | undefined): boolean {
  if (scaStatus !== undefined || links?.scaStatus !== undefined) return true;
  const names = Object.keys(links ?? {});
  return (
    names.some((name) => name === 'scaRedirect' || name === 'scaOAuth') &&
    !names.some((name) => name.startsWith('startAuthorisation'))
  );
}

/** The id at the end of a link to this payment. Other links are not used, because links of real banks are often wrong. */
function idInLink(
  href: unknown,
  type: string,
  { paymentId }: Operation,
  body: JsonObject | undefined,
): string | undefined {
  const [id = '', linkedType, linkedPayment] =
    (textIn(href) ?? '').split(/[?#]/, 1)[0]?.split('/').reverse() ?? [];
  const isOfPayment =
    linkedType === type && segmentToId(linkedPayment ?? '') === (paymentId ?? textIn(body?.paymentId));
  return isOfPayment ? segmentToId(id) : undefined;
}

/** The status in the response to a read of an authorisation. */
export const scaStatusOf = (json: unknown): string | undefined =>
  shortCode(textIn(objectIn(json)?.scaStatus));

type JsonObject = Readonly<Record<string, unknown>>;

const objectIn = (value: unknown): JsonObject | undefined =>
  typeof value === 'object' && value !== null ? { ...value } : undefined;

const textIn = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

const validId = (value: unknown): string | undefined =>
  typeof value === 'string' && isId(value) ? value : undefined;

export const isRunning = ({ scaStatus }: Authorisation): boolean =>
  scaStatus === undefined || !endsAuthorisation(scaStatus);

/** Whether the TPP does not know its last status. */
export const isUnreported = ({ id, scaStatus, reported }: Authorisation): boolean =>
  id !== undefined && scaStatus !== undefined && scaStatus !== reported;

/** Adds an authorisation that was started. @param nowMs milliseconds since 1970 */
export function withStarted(
  authorisations: readonly Authorisation[],
  { type, id, scaStatus }: StartedAuthorisation,
  nowMs: number,
): readonly Authorisation[] {
  if (authorisations.some((known) => known.type === type && known.id === id)) return authorisations;
  const started: Authorisation = {
    type,
    ...(id !== undefined && { id }),
    ...(scaStatus !== undefined && { scaStatus, reported: scaStatus }),
    since: nowMs,
  };
  return [...authorisations, started].filter(isStored).slice(-maxAuthorisations);
}

/** The result of one read for an authorisation. */
export interface AuthorisationRead extends Pick<Authorisation, 'type' | 'id'> {
  readonly result:
    | { readonly kind: 'status'; readonly scaStatus: string }
    | { readonly kind: 'listed'; readonly ids: readonly string[] }
    /** The bank does not know the authorisation, or refuses to show it. */
    | { readonly kind: 'gone' };
}

/** Applies the results of reads. @param nowMs milliseconds since 1970 */
export function withAuthorisationReads(
  authorisations: readonly Authorisation[],
  reads: readonly AuthorisationRead[],
  nowMs: number,
): readonly Authorisation[] {
  return reads
    .reduce((all, read) => withAuthorisationRead(all, read, nowMs), authorisations)
    .filter(isStored)
    .slice(-maxAuthorisations);
}

function withAuthorisationRead(
  authorisations: readonly Authorisation[],
  { type, id, result }: AuthorisationRead,
  nowMs: number,
): readonly Authorisation[] {
  const isRead = (one: Authorisation) => one.type === type && one.id === id;
  switch (result.kind) {
    case 'gone':
      return authorisations.filter((one) => !isRead(one));
    case 'status': {
      const { scaStatus } = result;
      return authorisations.map((one) =>
        isRead(one) && one.scaStatus !== scaStatus ? { ...one, scaStatus, since: nowMs } : one,
      );
    }
    case 'listed': {
      if (result.ids.length === 0) return authorisations; // the bank has not created it yet
      const known = new Set(authorisations.filter((one) => one.type === type).map((one) => one.id));
      const unknown = result.ids.filter((listed) => !known.has(listed));
      const unnamed = authorisations.find(isRead);
      return [
        ...authorisations.filter((one) => !isRead(one)),
        ...unknown.map((listed) => ({ ...unnamed, type, id: listed, since: nowMs })),
      ];
    }
  }
}

/** An authorisation is stored until it has ended and the TPP knows its last status. */
export const isStored = (authorisation: Authorisation): boolean =>
  isRunning(authorisation) || isUnreported(authorisation);
