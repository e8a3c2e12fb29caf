/**
 * The bank's page on which a person approves or rejects a payment: where `scaRedirect` leads. Plain HTML without scripts. It answers
 * on loopback only, and only to requests that name a loopback host: everybody who reaches it can approve payments.
 */
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { BankClock } from './clock.ts';
import type { Notifications } from './notifications.ts';
import { isFinal, type Payment, type PaymentAuthorisation } from './payment-lifecycle.ts';
import type { Payments } from './payments.ts';

const root = '/_bank/approve/';
const maxBodyBytes = 1_000;

/** Whether a request target belongs to the page. */
export const isApproval = (url: string) => url.startsWith(root);

/** The path of the page for an authorisation. */
export const approvalPath = (payment: Pick<Payment, 'id'>, authorisationId: string) =>
  `${root}${encodeURIComponent(payment.id)}/${encodeURIComponent(authorisationId)}`;

/** Whether a host, as in a URL, is this machine. */
export const isLoopback = (host: string) => /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i.test(host);

interface ApprovalContext {
  readonly bankName: string;
  /** Of the bank's listener. */
  readonly origin: string;
  readonly payments: Payments;
  readonly clock: BankClock;
  /** From the start of an authorisation until the payer approves by itself. */
  readonly authorisedAfterMs: number;
  readonly notifications: Pick<Notifications, 'check'>;
}

/** Shows the page, or records what the payer decides. Opening the page stops the payer who approves by itself. */
export async function answerApproval(
  context: ApprovalContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { status, title, content, allow } = await pageFor(context, request);
  const body = Buffer.from(documentOf(title, content, context.bankName));
  response.writeHead(status, {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Length': body.length,
    'Content-Security-Policy': contentSecurityPolicy,
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'same-origin', // with no-referrer, browsers send `Origin: null` with the form
    'X-Content-Type-Options': 'nosniff',
    ...(allow !== undefined && { Allow: allow }),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

interface Page {
  readonly status: number;
  readonly title: string;
  /** HTML. */
  readonly content: string;
  readonly allow?: string;
}

async function pageFor(context: ApprovalContext, request: IncomingMessage): Promise<Page> {
  const { origin, payments, clock, notifications } = context;
  const { host = '', origin: sender, 'sec-fetch-site': site } = request.headers;
  const { protocol, hostname } = new URL(origin);
  const called = URL.parse(`${protocol}//${host}`);
  if (!isLoopback(hostname) || !called || !isLoopback(called.hostname))
    return message(403, 'Not available here', 'This page answers on loopback only, such as 127.0.0.1.');
  const { method = '' } = request;
  if (!['GET', 'HEAD', 'POST'].includes(method))
    return { ...message(405, 'Not allowed', 'Open this page with GET.'), allow: 'GET, HEAD, POST' };

  const found = findAuthorisation(payments, request.url ?? '');
  if (!found) return message(404, 'Unknown payment', 'The bank has no such payment to approve.');
  if (method !== 'POST') {
    if (hasEnded(payments, found)) return endedPage(payments, found, 410);
    if (method === 'GET' && !found.authorisation.decision)
      payments.decide(found.payment, found.authorisation, { kind: 'open' });
    return { status: 200, title: 'Approve this payment?', content: questionOf(context, found) };
  }

  const isForeign = sender !== undefined && sender !== called.origin;
  const isCrossSite = site !== undefined && site !== 'same-origin' && site !== 'none';
  if (isForeign || isCrossSite)
    return message(403, 'Refused', 'Another web site has sent this form: open the link of the payment.');
  if (!(Number(request.headers['content-length']) <= maxBodyBytes))
    return message(413, 'Refused', 'Send decision=approve or decision=reject.');
  const [decision, ...others] = new URLSearchParams(await text(request)).getAll('decision');
  if (others.length > 0 || (decision !== 'approve' && decision !== 'reject'))
    return message(400, 'Refused', 'Send decision=approve or decision=reject.');
  // Two clicks can arrive at once: the second one finds the decision of the first.
  const current = findAuthorisation(payments, request.url ?? '') ?? found;
  if (hasEnded(payments, current)) return endedPage(payments, current, 409);
  const kind = decision === 'approve' ? 'approved' : 'rejected';
  payments.decide(current.payment, current.authorisation, { kind, at: clock.now() });
  notifications.check();
  const after = findAuthorisation(payments, request.url ?? '') ?? current;
  return { status: 200, title: titles[kind], content: resultOf(payments, after) };
}

interface Found {
  readonly payment: Payment;
  readonly authorisation: PaymentAuthorisation;
  readonly isCancellation: boolean;
}

function findAuthorisation(payments: Payments, url: string): Found | undefined {
  const [, paymentId, id] = /^\/_bank\/approve\/([^/?#]+)\/([^/?#]+)(?:\?.*)?$/.exec(url) ?? [];
  const payment = paymentId === undefined ? undefined : payments.withId(decoded(paymentId));
  if (!payment || id === undefined) return undefined;
  const isWanted = (one: PaymentAuthorisation) => one.id === decoded(id) && one.approach === 'REDIRECT';
  const authorisation = [...payment.authorisations, ...payment.cancellations].find(isWanted);
  if (!authorisation) return undefined;
  return { payment, authorisation, isCancellation: payment.cancellations.includes(authorisation) };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment; // no id has a malformed escape
  }
}

/** Whether the payer can no longer decide. */
function hasEnded(payments: Payments, { payment, authorisation, isCancellation }: Found): boolean {
  if (['finalised', 'failed'].includes(payments.scaStatusOf(payment, authorisation))) return true;
  const status = payments.statusOf(payment);
  return isCancellation ? isFinal(status) : status !== 'RCVD';
}

const titles = { approved: 'Approved', rejected: 'Rejected', open: 'Ended' } as const;

const message = (status: number, title: string, sentence: string): Page => ({
  status,
  title,
  content: `<p>${escapeHtml(sentence)}</p>`,
});

function endedPage(payments: Payments, found: Found, status: number): Page {
  const sentence = '<p>This authorisation has ended. Nothing has changed.</p>';
  return { status, title: 'Already decided', content: sentence + resultOf(payments, found) };
}

/** What happened, and the way back to the TPP. */
function resultOf(payments: Payments, found: Found): string {
  const { payment, authorisation, isCancellation } = found;
  const what = isCancellation ? 'the cancellation of this payment' : 'this payment';
  const { decision, returnTo } = authorisation;
  const { kind } = decision ?? {};
  const sentence =
    kind === 'approved' || kind === 'rejected'
      ? `<p>You have ${kind} ${what}.</p>`
      : `<p>The simulated payer, or the time, has decided on ${what}.</p>`;
  const isFailed = payments.scaStatusOf(payment, authorisation) === 'failed';
  const back = webUrl((isFailed ? returnTo?.nok : undefined) ?? returnTo?.ok);
  const link = back ? `<p><a href="${escapeHtml(back)}">Back to the payment service</a></p>` : '';
  return sentence + factsOf(payments, payment) + link;
}

function questionOf(
  { payments, authorisedAfterMs }: ApprovalContext,
  { payment, isCancellation }: Found,
): string {
  const what = isCancellation
    ? '<p>This approves or rejects the <b>cancellation</b> of the payment.</p>'
    : '';
  return `${what}${factsOf(payments, payment)}
<form method="post">
<button name="decision" value="approve">Approve</button>
<button name="decision" value="reject">Reject</button>
</form>
<p class="note">Without this page, the simulated payer approves by itself after ${authorisedAfterMs / 1_000} seconds. You have opened it, so the bank waits for you.</p>`;
}

/** The facts of the payment, as far as its order is JSON, and the whole order. */
function factsOf(payments: Payments, payment: Payment): string {
  const order = payment.order.toString('utf8');
  const { instructedAmount, debtorAccount, creditorName, creditorAccount, ...rest } = objectIn(order);
  const { amount, currency } = Object(instructedAmount);
  const rows = {
    Amount: [amount, currency],
    Debtor: [Object(debtorAccount).iban],
    Creditor: [creditorName, Object(creditorAccount).iban],
    Remittance: [rest.remittanceInformationUnstructured],
    Status: [payments.statusOf(payment)],
    Payment: [payment.id],
  };
  const list = Object.entries(rows)
    .map(([name, values]) => [name, values.map(shownText).filter(Boolean).join(' ')])
    .filter(([, shown]) => shown !== '')
    .map(([name, shown = '']) => `<dt>${name}</dt><dd>${escapeHtml(shown)}</dd>`)
    .join('');
  return `<dl>${list}</dl><details><summary>The whole order</summary><pre>${escapeHtml(order)}</pre></details>`;
}

/** A field of an order, which the bank does not validate. */
function shownText(value: unknown): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? String(value) : '(not a text: see the whole order)';
}

function objectIn(order: string): Readonly<Record<string, unknown>> {
  try {
    return { ...Object(JSON.parse(order)) };
  } catch {
    return {}; // an order in XML: the page shows it as text
  }
}

/** A URL of the TPP that is safe as a link: with `javascript:`, it could act as the bank. */
function webUrl(text: string | undefined): string | undefined {
  const url = text === undefined ? null : URL.parse(text);
  return url && /^https?:$/.test(url.protocol) ? url.href : undefined;
}

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const escapeHtml = (text: string) => text.replace(/[&<>"']/g, (character) => escapes[character] ?? '');

const style = `
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 36rem; margin: 3rem auto; padding: 0 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; } pre { white-space: pre-wrap; overflow-wrap: anywhere; }
button { font: inherit; padding: .5rem 1.5rem; margin: 1rem .5rem 1rem 0; }
.note { font-size: .9rem; }
`;

const contentSecurityPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const documentOf = (title: string, content: string, bankName: string) => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title} · simulated bank ${bankName}</title>
<style>${style}</style></head>
<body><main><p>Simulated bank <b>${bankName}</b>: no money moves.</p><h1>${title}</h1>
${content}
</main></body>
</html>
`;
