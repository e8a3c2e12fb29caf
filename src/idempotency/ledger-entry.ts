/** What is kept of one `X-Request-ID`: how far the first request with it has come, and what the bank answered. */

import { z } from 'zod';
import type { PisRequest, PisResponse } from '../request/messages.ts';

/** Readers take every version up to their own and pass over names they do not know. */
const commonFields = {
  v: z.literal(1),
  fingerprint: z.string(),
  /** One attempt: whoever claims again has another. */
  attempt: z.string(),
  /** The gateway instance that carries it out. */
  holder: z.string(),
  /** The TPP's own, for the operators. */
  requestId: z.string(),
  operation: z.string(),
  /** The gateway's own path, segment included; and the payment's id in it, if there was one already. */
  path: z.string(),
  paymentId: z.string().optional(),
  paymentService: z.string(),
  tenant: z.string(),
  /** When it was claimed: milliseconds since 1970. */
  since: z.number(),
};
const sentFields = {
  ...commonFields,
  environment: z.string(),
  /** Until when its holder listens for an answer: milliseconds since 1970. */
  listenedUntil: z.number(),
};

const entryShape = z.discriminatedUnion('step', [
  /** Nothing has been sent. */
  z.object({ ...commonFields, step: z.literal('claimed') }),
  /** The bank may have seen it, or is about to. */
  z.object({ ...sentFields, step: z.literal('sending') }),
  /** Nobody knows whether the bank has carried it out. */
  z.object({ ...sentFields, step: z.literal('in-doubt'), why: z.string() }),
  z.object({
    ...sentFields,
    step: z.literal('answered'),
    status: z.number(),
    headers: z.array(z.tuple([z.string(), z.string()])),
    body: z.base64(),
    /** Why the answer does not tell whether the bank has carried it out, if so. */
    why: z.string().optional(),
  }),
  /** Operators found out that the bank has carried it out; the answer is lost. */
  z.object({ ...sentFields, step: z.literal('happened') }),
]);

export type LedgerEntry = Readonly<z.output<typeof entryShape>>;
export type ClaimedEntry = Extract<LedgerEntry, { step: 'claimed' }>;
export type SendingEntry = Extract<LedgerEntry, { step: 'sending' }>;
export type AnsweredEntry = Extract<LedgerEntry, { step: 'answered' }>;
export type HappenedEntry = Extract<LedgerEntry, { step: 'happened' }>;
/** Of which operators are told, until they or the bank say what has become of it. */
export type InDoubtEntry = Extract<LedgerEntry, { step: 'in-doubt' | 'answered' }> & { readonly why: string };

/** Stands for an instant where an entry was given back: the next one to look finds none. */
export const releasedMarker = '';
/** How long it stands there, in milliseconds. */
export const releasedMarkerMs = 1;

/** A claim by this instance on an `X-Request-ID` that was free. */
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

/** An answer of 5xx is passed on and kept, but tells nothing: a front of the bank's may have given it. */
export function answeredEntry(entry: SendingEntry, { status, headers, body }: PisResponse): AnsweredEntry {
  const kept = { status, headers: headers.map(([name, value]): [string, string] => [name, value]) };
  const why = status >= 500 ? { why: `the bank answered ${status}` } : {};
  return { ...entry, step: 'answered', ...kept, body: body.toString('base64'), ...why };
}

/** What is known of it stays, but for what the bank answered. @param paymentId if operators know more than was asked */
export const happenedEntry = (entry: InDoubtEntry, paymentId = entry.paymentId): LedgerEntry =>
  entryShape.parse({ ...entry, paymentId, step: 'happened' }); // which leaves out what only other steps have

/** The bank's answer again. */
export function storedResponse({ status, headers, body, environment }: AnsweredEntry): PisResponse {
  return { status, headers, body: Buffer.from(body, 'base64'), servedFrom: 'ledger', environment };
}

export const isInDoubt = (entry: LedgerEntry | undefined): entry is InDoubtEntry =>
  entry !== undefined && 'why' in entry && entry.why !== undefined;

/** Whether it may still come to a doubt, or is one. */
export const isUnresolved = (entry: LedgerEntry | undefined): boolean =>
  entry !== undefined && (isInDoubt(entry) || entry.step === 'claimed' || entry.step === 'sending');

/** Where the status of the payment is read; `undefined` if its id is not known. */
export function statusPathOf({ path, operation, paymentId }: LedgerEntry): string | undefined {
  if (paymentId === undefined) return undefined;
  if (operation === 'initiatePayment') return `${path}/${paymentId}/status`;
  if (operation === 'cancelPayment') return `${path}/status`;
  return path.replace(/[^/]+$/, 'status'); // it stands beside the authorisations
}

export const serializeEntry = (entry: LedgerEntry): string => JSON.stringify(entry);

/** What a stored value says; `undefined` if it is corrupt, foreign, sealed under a lost key, or of a later version. */
export function parseEntry(text: string): LedgerEntry | undefined {
  try {
    return entryShape.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
