/** What is kept of one `X-Request-ID`: how far the first request with it has come, and what the bank answered. */

import { z } from 'zod';
import type { PisRequest, PisResponse } from '../flow/messages.ts';

/** Readers take every version up to their own and pass over names they do not know. */
const common = {
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
const sent = {
  ...common,
  environment: z.string(),
  /** Until when its holder listens for an answer: milliseconds since 1970. */
  listenedUntil: z.number(),
};

const shape = z.discriminatedUnion('step', [
  /** Nothing has been sent. */
  z.object({ ...common, step: z.literal('claimed') }),
  /** The bank may have seen it, or is about to. */
  z.object({ ...sent, step: z.literal('sending') }),
  /** Nobody knows whether the bank has carried it out. */
  z.object({ ...sent, step: z.literal('in-doubt'), why: z.string() }),
  z.object({
    ...sent,
    step: z.literal('answered'),
    status: z.number(),
    headers: z.array(z.tuple([z.string(), z.string()])),
    body: z.base64(),
    /** Why the answer does not tell whether the bank has carried it out, if so. */
    why: z.string().optional(),
  }),
  /** Operators found out that the bank has carried it out; the answer is lost. */
  z.object({ ...sent, step: z.literal('happened') }),
]);

export type Entry = Readonly<z.output<typeof shape>>;
export type Claimed = Extract<Entry, { step: 'claimed' }>;
export type Sending = Extract<Entry, { step: 'sending' }>;
export type Answered = Extract<Entry, { step: 'answered' }>;
export type Happened = Extract<Entry, { step: 'happened' }>;
/** Of which operators are told, until they or the bank say what has become of it. */
export type Doubtful = Extract<Entry, { step: 'in-doubt' | 'answered' }> & { readonly why: string };

/** Stands for an instant where an entry was given back: the next one to look finds none. */
export const released = '';
/** How long it stands there, in milliseconds. */
export const releasedForMs = 1;

/** A claim by this instance on an `X-Request-ID` that was free. */
export function claimed(
  { operation, client, requestId }: PisRequest,
  { fingerprint, attempt, holder }: Pick<Claimed, 'fingerprint' | 'attempt' | 'holder'>,
): Claimed {
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
export function answered(entry: Sending, { status, headers, body }: PisResponse): Answered {
  const kept = { status, headers: headers.map(([name, value]): [string, string] => [name, value]) };
  const why = status >= 500 ? { why: `the bank answered ${status}` } : {};
  return { ...entry, step: 'answered', ...kept, body: body.toString('base64'), ...why };
}

/** What is known of it stays, but for what the bank answered. @param paymentId if operators know more than was asked */
export const happened = (entry: Doubtful, paymentId = entry.paymentId): Entry =>
  shape.parse({ ...entry, paymentId, step: 'happened' }); // which leaves out what only other steps have

/** The bank's answer again. */
export function answerOf({ status, headers, body, environment }: Answered): PisResponse {
  return { status, headers, body: Buffer.from(body, 'base64'), servedFrom: 'ledger', environment };
}

export const isDoubtful = (entry: Entry | undefined): entry is Doubtful =>
  entry !== undefined && 'why' in entry && entry.why !== undefined;

/** Whether it may still come to a doubt, or is one. */
export const isOpen = (entry: Entry | undefined): boolean =>
  entry !== undefined && (isDoubtful(entry) || entry.step === 'claimed' || entry.step === 'sending');

/** Where the status of the payment is read; `undefined` if its id is not known. */
export function statusPathOf({ path, operation, paymentId }: Entry): string | undefined {
  if (paymentId === undefined) return undefined;
  if (operation === 'initiatePayment') return `${path}/${paymentId}/status`;
  if (operation === 'cancelPayment') return `${path}/status`;
  return path.replace(/[^/]+$/, 'status'); // it stands beside the authorisations
}

export const written = (entry: Entry): string => JSON.stringify(entry);

/** What a stored value says; `undefined` if it is corrupt, foreign, sealed under a lost key, or of a later version. */
export function parsed(text: string): Entry | undefined {
  try {
    return shape.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
