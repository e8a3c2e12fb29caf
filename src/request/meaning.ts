/** Decides what the bank's answer to a write means. The ledger, the owner of a payment, circuits, webhooks and look-ups use the result (ADR 113). */

import { headerValue } from '../pis/headers.ts';
import { isHtml } from '../pis/media-type.ts';
import type { Operation } from '../pis/operations.ts';
import { paymentIdInLink } from '../pis/payment-links.ts';
import type { Meaning, PisResponse } from './messages.ts';
import { type Content, hrefOf, memberOf, transactionStatusIn, webPage } from './read-content.ts';

type Answer = Pick<PisResponse, 'status' | 'headers'>;

/**
 * The first rule that applies decides.
 *
 * @param content        of the answer
 * @param followsReleasedAttempt whether an earlier attempt with this X-Request-ID was sent and released
 */
export function meaningOf(
  operation: Operation,
  answer: Answer,
  content: Content,
  followsReleasedAttempt: boolean,
): Meaning {
  const { status, headers } = answer;
  const paymentId = operation.createsPayment ? paymentIdIn(operation, answer, content) : undefined;
  const answered = `the bank answered ${status}`;
  if (status >= 500) return { outcome: 'failed', paymentId, why: answered };
  if (paymentId !== undefined) return { ...accepted, paymentId };
  if (status < 400 && isRefusal(content)) return refused;
  if (operation.createsPayment) {
    if (status < 400 || status === 408)
      return inDoubt(
        `${answered} without a payment: ${isRedirect(status) ? 'a redirect' : describe(content, headers)}`,
      );
  } else {
    if (isWebPage(content) || isHtml(headerValue(headers, 'content-type')))
      return inDoubt(`${answered} with a web page`);
    if (isRedirect(status)) return inDoubt(`${answered}: a redirect`);
    if (status === 304 || status === 408) return inDoubt(answered);
  }
  if (status === 409 && followsReleasedAttempt)
    return inDoubt(
      `${answered} after an earlier attempt with this X-Request-ID, which may have reached the bank`,
    );
  if (status === 429 || (status === 401 && isUnprocessed(operation, content))) return released;
  return status < 400 ? accepted : refused;
}

/** Whatever its label is. */
const isWebPage = (content: Content) => content.kind === 'unreadable' && content.why === webPage;

/** Whether the bank has executed the write. */
export const isAccepted = ({ meaning }: PisResponse): boolean => meaning?.outcome === 'accepted';

const isRedirect = (status: number) => status >= 300 && status < 400 && status !== 304;

const nothing = { paymentId: undefined, why: undefined };
const accepted: Meaning = { ...nothing, outcome: 'accepted' };
const refused: Meaning = { ...nothing, outcome: 'refused' };
const released: Meaning = { ...nothing, outcome: 'released' };
const inDoubt = (why: string): Meaning => ({ outcome: 'in-doubt', paymentId: undefined, why });

/** From the body, or else from a link: links of real banks are often wrong. */
function paymentIdIn(
  { paymentService, paymentProduct }: Operation,
  { status, headers }: Answer,
  content: Content,
): string | undefined {
  const named = idInBody(content);
  if (named !== undefined) return named;
  // A redirect may lead to any page of the bank; other links may have another spelling of the product.
  const product = isRedirect(status) ? paymentProduct : undefined;
  const links = [locationIn(headers), content.kind === 'json' ? selfLinkIn(content.json) : undefined];
  for (const link of links) {
    const id = link === undefined ? undefined : paymentIdInLink(link, paymentService, product);
    if (id !== undefined) return id;
  }
  return undefined;
}

function idInBody(content: Content): string | undefined {
  if (content.kind === 'xml') return content.leaves.get('paymentId')?.[0];
  const id = content.kind === 'json' ? memberOf(content.json, 'paymentId') : undefined;
  return typeof id === 'string' && id.trim() !== '' ? id : undefined;
}

/** Some banks send a JSON object: `{"href":"https://..."}`. */
function locationIn(headers: Answer['headers']): string | undefined {
  const location = headerValue(headers, 'location')?.trim();
  if (!location?.startsWith('{')) return location;
  try {
    return hrefOf(JSON.parse(location));
  } catch {
    return undefined;
  }
}

const selfLinkIn = (json: unknown) => hrefOf(memberOf(memberOf(json, '_links'), 'self'));

function isRefusal(content: Content): boolean {
  if (transactionStatusIn(content) === 'RJCT') return true;
  if (content.kind === 'xml') return content.leaves.get('category')?.includes('ERROR') ?? false;
  return messagesIn(content).some((message) => memberOf(message, 'category') === 'ERROR');
}

function messagesIn(content: Content): readonly unknown[] {
  const messages = content.kind === 'json' ? memberOf(content.json, 'tppMessages') : undefined;
  return Array.isArray(messages) ? messages : [messages];
}

/**
 * Whether a 401 concerns the access of the TPP. If the request may contain credentials of the payer, it may also be the answer to a
 * wrong password or TAN, which the bank has counted.
 */
function isUnprocessed({ carriesCredentials }: Operation, content: Content): boolean {
  if (!carriesCredentials) return true;
  return codesIn(content).some((code) => /^(?:TOKEN|CERTIFICATE|SIGNATURE)_/.test(code));
}

/**
 * The code of an error of the bank, for records: the first one, or `other` if it is not a code as the standard has them, because then it may
 * contain anything; `undefined` if there is none.
 *
 * Source: `tppMessages` of the OpenAPI files 1.3.6 and 1.3.11; problem details of their 4xx answers.
 */
export function errorCodeIn(content: Content): string | undefined {
  const [code] = codesIn(content);
  if (code === undefined) return undefined;
  return /^[A-Z0-9_]{1,64}$/.test(code) ? code : 'other';
}

/** In the messages of the bank, and as a member of problem details. */
function codesIn(content: Content): readonly string[] {
  if (content.kind === 'xml') return content.leaves.get('code') ?? [];
  const problemCode = content.kind === 'json' ? memberOf(content.json, 'code') : undefined;
  const codes = [...messagesIn(content).map((message) => memberOf(message, 'code')), problemCode];
  return codes.filter((code) => typeof code === 'string');
}

function describe(content: Content, headers: Answer['headers']): string {
  switch (content.kind) {
    case 'empty':
      return 'its body is empty';
    case 'unreadable': {
      const isPage = content.why === 'not JSON or XML' && isHtml(headerValue(headers, 'content-type'));
      return `its body cannot be read (${isPage ? 'a web page' : content.why})`;
    }
    case 'json':
    case 'xml':
      return 'its body has no paymentId';
  }
}
