/** A ledger entry: how far the first request with an `X-Request-ID` got, and what the bank answered. */

import { z } from 'zod';
import { idToSegment } from '../pis/operations.ts';
import { currentTenantId } from '../request/identities.ts';
import type { PisRequest, PisResponse } from '../request/messages.ts';
import { memberOf } from '../request/read-content.ts';
import { parseStored } from '../state/parse-stored.ts';
import type { Fingerprints } from './request-identity.ts';

/** The fields of every entry. Readers ignore unknown fields. */
const commonFields = {
  v: z.literal(1),
  fingerprints: z.object({ key: z.string().optional(), request: z.string(), content: z.string() }).readonly(),
  /** Random id of one attempt; a new claim of the same `X-Request-ID` gets another one. */
  attempt: z.string(),
  /** Id of the gateway instance that executes the attempt. */
  holder: z.string(),
  /** The TPP's own `X-Request-ID`, shown to operators. */
  requestId: z.string(),
  operation: z.string(),
  /** The gateway's own path, segment included, and the payment id if the path or the answer to an initiation contains one. */
  path: z.string(),
  paymentId: z.string().optional(),
  paymentService: z.string(),
  /** The identity of the tenant, not its name. */
  tenant: z.string(),
  /** When the request was claimed: milliseconds since 1970. */
  since: z.number(),
  /** Set if the request was a step of an authorisation before the last one: it executes nothing. */
  isFirstFactor: z.literal(true).optional(),
  /** Whether an earlier attempt was sent, and released after the bank's answer. */
  followsReleasedAttempt: z.boolean().optional(),
};
const sentFields = {
  ...commonFields,
  /** The identity of the environment, not its name. */
  environment: z.string(),
  /** Until when the holder waits for a response: milliseconds since 1970. */
  listenedUntil: z.number(),
  /** Set if another attempt with this `X-Request-ID` reached the bank, too: what is known of it. */
  otherAttempt: z.string().optional(),
};
/** Of the meaning of the bank's answer; missing if the bank has not answered. */
const outcome = z.enum(['accepted', 'refused', 'released', 'in-doubt', 'failed']).optional();

const entryShape = z.discriminatedUnion('step', [
  /** Nothing has been sent. */
  z.object({ ...commonFields, step: z.literal('claimed') }),
  /** The bank may have received the request, or is about to. */
  z.object({ ...sentFields, step: z.literal('sending') }),
  /** It is unknown whether the bank executed the request. */
  z.object({ ...sentFields, step: z.literal('in-doubt'), why: z.string(), outcome }),
  z.object({
    ...sentFields,
    step: z.literal('answered'),
    status: z.number(),
    outcome,
    headers: z.array(z.tuple([z.string(), z.string()]).readonly()).readonly(),
    body: z.base64(),
    /** The public URL in its links, if it has links of the gateway. */
    publicUrl: z.string().optional(),
    /** Set if the response leaves open whether the bank executed the request: the reason. */
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
/** The bank may have received the request. */
export type SentEntry = Exclude<LedgerEntry, { step: 'claimed' }>;
/** Listed for operators until they or the bank report the outcome. */
export type InDoubtEntry = Extract<LedgerEntry, { step: 'in-doubt' | 'answered' }> & { readonly why: string };

/** A claim by this instance on an unused `X-Request-ID`. */
export function claimedEntry(
  request: PisRequest,
  fingerprints: Fingerprints,
  {
    attempt,
    holder,
    followsReleasedAttempt,
  }: Pick<ClaimedEntry, 'attempt' | 'holder' | 'followsReleasedAttempt'>,
): ClaimedEntry {
  const { operation, requestId } = request;
  const { name, path, paymentService, paymentId } = operation;
  return {
    v: 1,
    step: 'claimed',
    fingerprints,
    attempt,
    holder,
    requestId,
    since: Date.now(),
    operation: name,
    path,
    paymentService,
    ...(paymentId !== undefined && { paymentId }),
    tenant: currentTenantId(request),
    ...(isFirstFactor(request) && { isFirstFactor: true }),
    ...(followsReleasedAttempt && { followsReleasedAttempt }),
  };
}

/**
 * Whether a request updates an authorisation with a password or the choice of a method, not with a TAN or a confirmation. A body that
 * the gateway cannot read may contain a TAN.
 */
function isFirstFactor({ operation, body }: PisRequest): boolean {
  if (operation.name !== 'updatePsuData') return false;
  const json = jsonIn(body);
  const has = (name: string) => memberOf(json, name) !== undefined;
  return (
    (has('psuData') || has('authenticationMethodId')) &&
    !has('scaAuthenticationData') &&
    !has('confirmationCode')
  );
}

/** @returns `undefined` if the body is no JSON; the parser's error quotes the body, and goes nowhere */
function jsonIn(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}

/** The entry of a request that is about to be sent. @param listenedUntil milliseconds since 1970 */
export function sendingEntry(
  claimed: SerializedEntry<ClaimedEntry>,
  environment: string,
  listenedUntil: number,
): SerializedEntry<SendingEntry> {
  const added = { environment, listenedUntil };
  return {
    entry: { ...claimed.entry, step: 'sending', ...added },
    raw: nextText(claimed, 'sending', added),
  };
}

/** Stores the bank's response and, of an initiation, its payment. A 5xx leaves the outcome in doubt: a proxy in front of the bank may have sent it. */
export function answeredEntry(
  sending: SerializedEntry<SendingEntry>,
  bankResponse: PisResponse,
): SerializedEntry<AnsweredEntry> {
  const { status, headers, body, publicUrl, meaning } = bankResponse;
  const added = {
    status,
    headers,
    body: body.toString('base64'),
    ...(publicUrl !== undefined && { publicUrl }),
    ...(meaning && { outcome: meaning.outcome }),
    ...(meaning?.paymentId !== undefined && { paymentId: meaning.paymentId }),
    ...(meaning?.why !== undefined && { why: meaning.why }),
  };
  return {
    entry: { ...sending.entry, step: 'answered', ...added },
    raw: nextText(sending, 'answered', added),
  };
}

/** @param paymentId the id of the initiated payment, if the operator knows it */
export const happenedEntry = (entry: InDoubtEntry, paymentId = entry.paymentId): LedgerEntry =>
  entryShape.parse({ ...entry, paymentId, step: 'happened' }); // drops the fields of other steps

/** The stored response of the bank. @param environment the name of its environment */
export function storedResponse(entry: AnsweredEntry, environment: string = entry.environment): PisResponse {
  const { status, headers, body, publicUrl } = entry;
  const response = { status, headers, body: Buffer.from(body, 'base64'), environment };
  return { ...response, servedFrom: 'ledger', ...(publicUrl !== undefined && { publicUrl }) };
}

/** The entry without the bank's response, if that is too long to be remembered. */
export function withoutResponse(entry: AnsweredEntry): LedgerEntry {
  const { status, outcome, why } = entry;
  if (why === undefined && outcome === 'accepted') return entryShape.parse({ ...entry, step: 'happened' });
  const reason = why ?? `the bank answered ${status}, and its response is lost`;
  return entryShape.parse({ ...entry, step: 'in-doubt', why: reason });
}

/** Puts the entry in doubt because another attempt has reached the bank as well. @param otherAttempt what is known of it */
export function withOtherAttempt(entry: SentEntry, otherAttempt: string): LedgerEntry {
  const why = `two attempts reached the bank: ${describeAttempt(entry)}; ${otherAttempt}`;
  const step = entry.step === 'answered' ? 'answered' : 'in-doubt';
  return entryShape.parse({ ...entry, step, why, otherAttempt });
}

/** What is known of an attempt, for operators. */
export function describeAttempt(entry: SentEntry): string {
  const outcome =
    entry.step === 'answered' ? `the bank answered ${entry.status}` : 'its outcome is not known';
  return `the attempt of ${new Date(entry.since).toISOString()} in ${entry.environment} (${outcome})`;
}

export const isInDoubt = (entry: LedgerEntry | undefined): entry is InDoubtEntry =>
  entry !== undefined && 'why' in entry && entry.why !== undefined;

/** Whether the entry is in doubt or may still become so. */
export const isUnresolved = (entry: LedgerEntry | undefined): boolean =>
  entry !== undefined && (isInDoubt(entry) || entry.step === 'claimed' || entry.step === 'sending');

/** The path of the payment's status; `undefined` if the payment id is unknown. */
export function statusPathOf({ path, operation, paymentId }: LedgerEntry): string | undefined {
  if (paymentId === undefined) return undefined;
  if (operation === 'initiatePayment') return `${path}/${idToSegment(paymentId)}/status`;
  if (operation === 'cancelPayment' || operation === 'updatePayment') return `${path}/status`;
  // Replaces the segments after the payment: the type of the authorisation, and its id.
  return path.replace(operation === 'updatePsuData' ? /[^/]+\/[^/]+$/ : /[^/]+$/, 'status');
}

/** An entry and its stored text: each step of an entry is serialized once. */
export interface SerializedEntry<Entry extends LedgerEntry = LedgerEntry> {
  readonly entry: Entry;
  readonly raw: string;
}

/** The beginning of the text of every entry that this release writes. */
const beginning = (step: LedgerEntry['step']) => `{"v":1,"step":"${step}"`;

/**
 * The text of the next step: that of the former one with other fields appended. To serialize the whole entry again takes several
 * times as long.
 */
const nextText = ({ entry, raw }: SerializedEntry, step: LedgerEntry['step'], added: object): string =>
  `${beginning(step)}${raw.slice(beginning(entry.step).length, -1)},${JSON.stringify(added).slice(1)}`;

export const serialized = <Entry extends LedgerEntry>(entry: Entry): SerializedEntry<Entry> => ({
  entry,
  raw: JSON.stringify(entry),
});

/** @returns `undefined` if the value is corrupt, foreign, of a later version, or encrypted with a missing key */
export const parseEntry = (text: string): LedgerEntry | undefined => parseStored(entryShape, text);
