/** The parts that every request passes, with inputs as in the other measurements. */

import { parseRecord, writtenRecord } from '../src/environments/payment-record.ts';
import type { RoutedRequest } from '../src/flow/messages.ts';
import { identityOf } from '../src/idempotency/fingerprint.ts';
import { endToEnd, fieldsOf, headerValue } from '../src/pis/headers.ts';
import { createMatcher, type Operation } from '../src/pis/operations.ts';
import { createPublicAddresses } from '../src/rewriting/addresses.ts';
import { rewriteLinks } from '../src/rewriting/links.ts';
import { createMemoryState } from '../src/state/memory.ts';
import { reserveTurn } from '../src/state/token-bucket.ts';
import { parsed, withSighting, written } from '../src/status-cache/document.ts';
import { responseOf } from '../src/status-cache/entry.ts';
import { ttlOf } from '../src/status-cache/freshness.ts';
import { createPlaces } from '../src/status-cache/place.ts';
import type { Once } from './measure/loop.ts';
import { answer, created, initiation, statusRead } from './traffic.ts';

/** One row of the table. */
interface Part {
  readonly name: string;
  readonly once: Once;
}

const match = createMatcher({
  segment: 'berlingroup',
  paymentServices: ['payments', 'bulk-payments', 'periodic-payments'],
  paymentProducts: 'any',
  authorisationTypes: ['authorisations', 'cancellation-authorisations'],
});
const id = '0123456789abcdef0123456789abcdef';
const status = statusRead(id);
const rawHeaders = Object.entries({ Host: '127.0.0.1', ...status.headers }).flat();
const fields = fieldsOf(rawHeaders);

const requestOf = (method: string, path: string, body = ''): RoutedRequest => ({
  operation: operationOf(method, path),
  client: { name: 'shop', tenant: 'shop', environments: ['sandbox', 'production'] },
  requestId: '99391c7e-ad88-49ec-a2ad-99ddcb1f7721',
  headers: fields,
  body: Buffer.from(body),
  arrivedAtMs: 0,
  deadlineAtMs: 35_000,
  environment: { name: 'sandbox', origin: 'https://bank.example', basePath: '', standardVersion: '1.3.11' },
});
const read = requestOf('GET', status.path);
const payment = requestOf('POST', initiation.path, initiation.body);

const places = createPlaces(createMemoryState());
const place = await places.of(read);
const entry = {
  headers: [['Content-Type', 'application/json'] as const],
  body: Buffer.from(answer).toString('base64'),
  fetchedAt: 0,
  ttlMs: 3_600_000,
  credential: place.credential,
};
const sighting = { standing: 'ACCC', seenAt: 0, entries: { [place.variant]: entry } };
const document = written(withSighting(parsed(undefined), sighting));
const home = { environment: 'sandbox', tenant: 'shop' };
const record = writtenRecord({ homes: [home], renewedAt: 0, lasts: 'remembered' });

const toPublic = createPublicAddresses('https://gateway.example', 'berlingroup')(payment);
const withLinks = Buffer.from(created(id));
const withoutLinks = Buffer.from(answer);
const freshness = { finalTtl: 3_600_000, settledTtl: 60_000, pendingTtl: 1_000, pendingTtlMax: 15_000 };
const rate = { perSecond: 50, burst: 50 };

export const parts: readonly Part[] = [
  { name: 'operations: match a status read', once: () => match('GET', status.path) },
  { name: 'operations: match an initiation', once: () => match('POST', initiation.path) },
  { name: 'headers: pairs of rawHeaders', once: () => fieldsOf(rawHeaders) },
  { name: 'headers: end-to-end fields', once: () => endToEnd(fields) },
  { name: 'headers: find one', once: () => headerValue(fields, 'psu-ip-address') },
  { name: 'ledger: key and fingerprint, 1 KB', once: () => identityOf(payment) },
  { name: 'affinity: parse a payment record', once: () => parseRecord(record) },
  { name: 'rewriting: body without links, 600 B', once: () => rewriteLinks(withoutLinks, toPublic) },
  { name: 'rewriting: body with four links', once: () => rewriteLinks(withLinks, toPublic) },
  { name: 'status cache: place of a request', once: () => places.of(read) },
  { name: 'status cache: parse a document, 600 B', once: () => parsed(document) },
  { name: 'status cache: answer from an entry', once: () => responseOf(entry, 'sandbox') },
  { name: 'status cache: time to live', once: () => ttlOf(freshness, 'payments', 'ACCP', 5_000) },
  { name: 'token bucket: reserve a turn', once: () => reserveTurn(0, 1_000, rate, 3_000) },
];

function operationOf(method: string, path: string): Operation {
  const found = match(method, path);
  if (found.kind !== 'operation') throw new Error(`${method} ${path} is no operation`);
  return found.operation;
}
