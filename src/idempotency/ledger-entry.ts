/** A ledger entry: how far the first request with an `X-Request-ID` got, and what the bank answered. */

import { z } from 'zod';
import type { PisRequest, PisResponse } from '../request/messages.ts';

/** The fields of every entry. Readers ignore unknown fields. */
const commonFields = {
  v: z.literal(1),
  fingerprint: z.string(),
  /** Random id of one attempt; a new claim of the same `X-Request-ID` gets another one. */
  attempt: z.string(),
  /** Id of the gateway instance that executes the attempt. */
  holder: z.string(),
  /** The TPP's own `X-Request-ID`, shown to operators. */
  requestId: z.string(),
  operation: z.string(),
  /** The gateway's own path, segment included, and the payment id if the path contains one. */
  path: z.string(),
  paymentId: z.string().optional(),
  paymentService: z.string(),
  tenant: z.string(),
  /** When the request was claimed: milliseconds since 1970. */
  since: z.number(),
};
const sentFields = {
  ...commonFields,
  environment: z.string(),
  /** Until when the holder waits for a response: milliseconds since 1970. */
  listenedUntil: z.number(),
};

const entryShape = z.discriminatedUnion('step', [
  /** Nothing has been sent. */
  z.object({ ...commonFields, step: z.literal('claimed') }),
  /** The bank may have received the request, or is about to. */
  z.object({ ...sentFields, step: z.literal('sending') }),
  /** It is unknown whether the bank executed the request. */
  z.object({ ...sentFields, step: z.literal('in-doubt'), why: z.string() }),
  z.object({
    ...sentFields,
    step: z.literal('answered'),
    status: z.number(),
    headers: z.array(z.tuple([z.string(), z.string()])),
    body: z.base64(),
    /** Set if the response does not tell whether the bank executed the request: the reason. */
    why: z.string().optional(),
  }),
  /** An operator confirmed that the bank executed the request; the response is lost. */
  z.object({ ...sentFields, step: z.literal('happened') }),
]);

export type LedgerEntry = Readonly<z.output<typeof entryShape>>;
export type ClaimedEntry = Extract<LedgerEntry, { step: 'claimed' }>;
export type SendingEntry = Extract<LedgerEntry, { step: 'sending' }>;
export type AnsweredEntry = Extract<LedgerEntry, { step: 'answered' }>;
export type HappenedEntry = Extract<LedgerEntry, { step: 'happened' }>;
/** Listed for operators until they or the bank report the outcome. */
export type InDoubtEntry = Extract<LedgerEntry, { step: 'in-doubt' | 'answered' }> & { readonly why: string };

/** A claim by this instance on an unused `X-Request-ID`. */
export function claimedEntry(
  { operation, client, requestId }: PisRequest,
  { fingerprint, attempt, holder }: Pick<ClaimedEntry, 'fingerprint' | 'attempt' | 'holder'>,
): ClaimedEntry {
  const { name, path, paymentService, paymentId } = operation;
  return {
    v: 1,
    step: 'claimed',
    fingerprint,
    attempt,
    holder,
    requestId,
    since: Date.now(),
    operation: name,
    path,
    paymentService,
    ...(paymentId !== undefined && { paymentId }),
    tenant: client.tenant,
  };
}

/** Stores the bank's response. A 5xx leaves the outcome in doubt: a proxy in front of the bank may have sent it. */
export function answeredEntry(entry: SendingEntry, { status, headers, body }: PisResponse): AnsweredEntry {
  const response = { status, headers: headers.map(([name, value]): [string, string] => [name, value]) };
  const why = status >= 500 ? { why: `the bank answered ${status}` } : {};
  return { ...entry, step: 'answered', ...response, body: body.toString('base64'), ...why };
}

/** @param paymentId the id of the initiated payment, if the operator knows it */
export const happenedEntry = (entry: InDoubtEntry, paymentId = entry.paymentId): LedgerEntry =>
  entryShape.parse({ ...entry, paymentId, step: 'happened' }); // drops the fields of other steps

/** The stored response of the bank. */
export function storedResponse({ status, headers, body, environment }: AnsweredEntry): PisResponse {
  return { status, headers, body: Buffer.from(body, 'base64'), servedFrom: 'ledger', environment };
}

export const isInDoubt = (entry: LedgerEntry | undefined): entry is InDoubtEntry =>
  entry !== undefined && 'why' in entry && entry.why !== undefined;

/** Whether the entry is in doubt or may still become so. */
export const isUnresolved = (entry: LedgerEntry | undefined): boolean =>
  entry !== undefined && (isInDoubt(entry) || entry.step === 'claimed' || entry.step === 'sending');

/** The path of the payment's status; `undefined` if the payment id is unknown. */
export function statusPathOf({ path, operation, paymentId }: LedgerEntry): string | undefined {
  if (paymentId === undefined) return undefined;
  if (operation === 'initiatePayment') return `${path}/${paymentId}/status`;
  if (operation === 'cancelPayment') return `${path}/status`;
  return path.replace(/[^/]+$/, 'status'); // replaces the authorisations segment
}

export const serializeEntry = (entry: LedgerEntry): string => JSON.stringify(entry);

/** @returns `undefined` if the value is corrupt, foreign, of a later version, or encrypted with a missing key */
export function parseEntry(text: string): LedgerEntry | undefined {
  try {
    return entryShape.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
