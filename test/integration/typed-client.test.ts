/** The typed client for TPP systems (docs/callers/typed-client.md) works against the gateway, and its types are up to date. */

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import {
  cancel,
  createTypedClient,
  type Order,
  pay,
  payOnce,
  waitForStatus,
} from '../../examples/callers/typed-client.ts';
import { root, startCommand } from '../kit/command.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { listen } from '../kit/ports.ts';
import { until } from '../kit/within.ts';

const apiKey = 'key of shop';
const clients = [{ name: 'shop', apiKeySha256: createHash('sha256').update(apiKey).digest('hex') }];

const newOrder = (): Order => ({
  requestId: randomUUID(),
  wasSent: false,
  payment: {
    instructedAmount: { currency: 'EUR', amount: '123.50' },
    debtorAccount: { iban: 'DE89370400440532013000' },
    creditorName: 'Merchant123',
    creditorAccount: { iban: 'DE02100100109307118603' },
  },
});

const ofBank = { 'Penstock-Environment': 'sandbox', 'Content-Type': 'application/json' };
const ofGateway = (code: string) => ({ ...ofBank, 'Penstock-Error': code });
const unknownOutcome = { ...ofBank, 'Penstock-Outcome': 'unknown' };
const statusBody = '{"transactionStatus":"ACTC"}';

type Row = [
  what: string,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string,
  wasSent: boolean,
  outcome: string,
];
const cancellations: readonly Row[] = [
  ['a 204', 204, ofBank, '', false, 'cancelled'],
  ['a 202 of the bank', 202, ofBank, statusBody, false, 'to be authorised'],
  ['a 202 without a body', 202, ofBank, '', false, 'to be authorised'],
  ['a 202 that is a refusal', 202, ofBank, '{"transactionStatus":"RJCT"}', false, 'refused'],
  [
    'an operator has said that it happened',
    409,
    ofGateway('DUPLICATE_IN_DOUBT'),
    '{"paymentId":"p1"}',
    true,
    'cancelled',
  ],
  ['no outcome in time', 504, ofGateway('OUTCOME_UNKNOWN'), '{}', false, 'not known'],
  ['a redirect of the bank', 302, unknownOutcome, '', false, 'not known'],
  ['a first attempt that is in progress', 409, ofGateway('DUPLICATE_IN_FLIGHT'), '{}', true, 'not known'],
  ['a first attempt that is in doubt', 409, ofGateway('DUPLICATE_IN_DOUBT'), '{}', true, 'not known'],
  ['a request that was too slow', 408, ofGateway('REQUEST_TIMEOUT'), '{}', false, 'not known'],
  ['too many requests', 429, ofGateway('QUOTA_EXCEEDED'), '{}', false, 'not known'],
  ['an expired token', 401, ofBank, '{}', false, 'not known'],
  ['an unknown API key', 401, ofGateway('CLIENT_UNKNOWN'), '{}', false, 'not known'],
  ['a page of a proxy', 502, {}, '<html>', false, 'not known'],
  [
    'a refusal of the gateway to a later attempt',
    403,
    ofGateway('ENVIRONMENT_FORBIDDEN'),
    '{}',
    true,
    'not known',
  ],
  ['a refusal of the gateway', 403, ofGateway('ENVIRONMENT_FORBIDDEN'), '{}', false, 'refused'],
  ['a refusal of the bank without messages', 400, ofBank, '{"error":"bad"}', true, 'refused'],
  ['an X-Request-ID of another request', 409, ofGateway('DUPLICATE_MISMATCH'), '{}', false, 'mismatch'],
];

describe('the typed client', { concurrency: true }, () => {
  test('pays once, waits for the status and cancels', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { clients });
    const client = createTypedClient(`${gateway.url}/berlingroup/v1`, apiKey);
    const order = newOrder();

    const { paymentId, initiated } = (await payOnce(client, order)) ?? assert.fail();
    assert.equal(initiated?.transactionStatus, 'RCVD');
    const repeated = await payOnce(client, { ...order, wasSent: true });
    assert.equal(repeated?.paymentId, paymentId);
    assert.equal(bank.payments.length, 1);

    const waiting = waitForStatus(client, paymentId, ['ACTC']);
    await until(10_000, 'the gateway reads the status', () =>
      bank.requests.some(({ url }) => url.endsWith('/status')),
    );
    bank.setStatus(paymentId, 'ACTC');
    assert.equal(await waiting, 'ACTC');
    bank.setStatus(paymentId, undefined);

    const cancellation = { requestId: randomUUID(), paymentId, wasSent: false };
    assert.equal(await cancel(client, cancellation), 'cancelled');
    assert.equal(bank.payments[0]?.transactionStatus, 'CANC');
  });

  test('does not know the outcome if the bank does not answer, and throws if the bank refuses the payment', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { clients, idempotency: { lateAnswer: '0s' } });
    const client = createTypedClient(`${gateway.url}/berlingroup/v1`, apiKey);
    bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
    const order = newOrder();
    for (let attempt = 1; attempt <= 2; attempt++)
      assert.equal((await pay(client, order)).paymentId, undefined);
    assert.equal(bank.payments.length, 1);

    bank.injectFault({ name: 'status', status: 403 }, { times: 1 });
    await assert.rejects(pay(client, newOrder()));
  });

  test('stops waiting when the payment has a final status that is not wanted', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { clients });
    const client = createTypedClient(`${gateway.url}/berlingroup/v1`, apiKey);
    const { paymentId } = (await payOnce(client, newOrder())) ?? assert.fail();
    bank.setStatus(paymentId, 'RJCT');
    assert.equal(await waitForStatus(client, paymentId, ['ACSC']), 'RJCT');
  });

  test('pauses between reads that the gateway answers at once', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, { clients, statusCache: { enabled: false } });
    const client = createTypedClient(`${gateway.url}/berlingroup/v1`, apiKey);
    const { paymentId } = (await payOnce(client, newOrder())) ?? assert.fail();
    const waiting = waitForStatus(client, paymentId, ['ACTC']);
    const reads = () => bank.requests.filter(({ url }) => url.endsWith('/status')).length;
    await until(10_000, 'the first read', () => reads() > 0);
    // Each of these takes about as long as a read: without a pause, there would be as many reads.
    for (let count = 0; count < 60; count++) await pay(client, newOrder());
    assert.ok(reads() < 30, `${reads()} reads`);
    bank.setStatus(paymentId, 'ACTC');
    assert.equal(await waiting, 'ACTC');
  });

  for (const [what, status, headers, body, wasSent, outcome] of cancellations)
    test(`says of a cancellation "${outcome}" after ${what}`, async (t) => {
      const { url } = await startAnswers(t, [{ status, headers, body }]);
      const cancellation = { requestId: randomUUID(), paymentId: 'p1', wasSent };
      const said = await cancel(createTypedClient(url, apiKey), cancellation).catch((error: Error) => {
        if (error.message.includes('belongs to another request')) return 'mismatch';
        return error.message.includes('the cancellation was refused') ? 'refused' : error.message;
      });
      assert.equal(said, outcome);
    });

  test('continues to wait for a status after a read that is cut off or gets the page of a proxy', async (t) => {
    const cut = { status: 200, headers: { ...ofBank, 'Content-Length': '100' }, body: '{', isCut: true };
    const page = { status: 200, headers: { 'Content-Type': 'text/html' }, body: '<html>' };
    const { url } = await startAnswers(t, [cut, page, { status: 200, headers: ofBank, body: statusBody }]);
    assert.equal(await waitForStatus(createTypedClient(url, apiKey), 'p1', ['ACTC']), 'ACTC');
  });

  test('stops waiting for a status when its patience is over', async (t) => {
    const { url } = await startAnswers(t, [{ status: 200, headers: {}, body: '<html>' }]);
    assert.equal(await waitForStatus(createTypedClient(url, apiKey), 'p1', ['ACTC'], 1), undefined);
  });

  test('waits at least as long as Retry-After says, and ignores one that is not positive', async (t) => {
    const busy = { status: 429, headers: { ...ofBank, 'Retry-After': '3600' }, body: '{}' };
    const long = await startAnswers(t, [busy]);
    assert.equal(await payOnce(createTypedClient(long.url, apiKey), newOrder(), 20_000), undefined);
    assert.equal(long.requests(), 1);
    const negative = await startAnswers(t, [{ ...busy, headers: { ...ofBank, 'Retry-After': '-1' } }]);
    assert.equal(await payOnce(createTypedClient(negative.url, apiKey), newOrder(), 400), undefined);
    assert.equal(negative.requests(), 1);
  });

  test('prints the X-Request-ID in the recipe of its page before it sends the payment, and repeats it', async (t) => {
    const { url, ids } = await startAnswers(t, [
      { status: 429, headers: { ...ofBank, 'Retry-After': '3600' }, body: '{}' },
      { status: 201, headers: ofBank, body: '{"paymentId":"p1"}' },
    ]);
    const [, recipe = assert.fail()] =
      /```js\n([\s\S]*?)```/.exec(textOf('docs/callers/typed-client.md')) ?? [];
    const client = pathToFileURL(join(root, 'examples/callers/typed-client.ts')).href;
    const program = recipe.replace(/http:[^']+/, url).replace('./typed-client.ts', client);
    const file = join(temporaryFolder(t), 'pay.mts');
    writeFileSync(file, program);
    const first = startCommand(t, process.execPath, [file]);
    await first.exitCode();
    const [, requestId = assert.fail(first.stdout() + first.stderr())] =
      /^X-Request-ID: (\S+)\nnot known yet, repeat it: node pay.ts \1$/m.exec(first.stdout()) ?? [];
    const second = startCommand(t, process.execPath, [file, requestId]);
    await second.exitCode();
    assert.match(second.stdout(), /paymentId: 'p1'/);
    assert.deepEqual(ids, [requestId, requestId]);
  });

  test('has types that were made from the present description, and compiles without a cast', () => {
    const digest = createHash('sha256').update(textOf('docs/tpp-openapi.yaml')).digest('hex');
    const [line = ''] = textOf('examples/callers/penstock-api.d.ts').split('\n', 1);
    assert.ok(line.endsWith(digest), 'stale types; run: npm run types:tpp');
    const program = textOf('examples/callers/typed-client.ts').replaceAll('as const', '');
    assert.doesNotMatch(program, /\bas [A-Zau]|\bany\b(?! )|@ts-|[\w)\]]!/);
  });
});

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Whether the connection closes before the end of the body. */
  readonly isCut?: boolean;
}

/** Gives these answers, and then the last one again and again. */
async function startAnswers(t: TestContext, answers: readonly Answer[]) {
  const ids: unknown[] = [];
  const server = createServer((request, response) => {
    const answer = answers[Math.min(ids.length, answers.length - 1)] ?? assert.fail();
    ids.push(request.headers['x-request-id']);
    response.writeHead(answer.status, { ...answer.headers, Connection: 'close' });
    if (answer.isCut) response.write(answer.body, () => response.destroy());
    else response.end(answer.body);
  });
  const port = await listen(server);
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${port}`, ids, requests: () => ids.length };
}

const textOf = (file: string) => readFileSync(join(root, file), 'utf8');
