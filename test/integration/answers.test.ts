/** What each kind of answer of the bank to a write means: for the TPP, for its repeats, for operators, and for the payment's owner. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { callAdminApi } from '../kit/admin-api.ts';
import { type Call, call } from '../kit/call.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import type { Field } from '../kit/fields.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { type GatewayUnderTest, type Sections, startGateway } from '../kit/gateway.ts';
import { reportOf, selfService } from '../kit/look-up.ts';
import { sharedRedisUrl, skipWithoutRedis } from '../kit/redis.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { type StubBank, type StubResponse, startStubBank } from '../kit/stub-bank.ts';
import { apiKeyOf, type ClientName, clientSettings } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

type OperationName = 'initiation' | 'cancellation' | 'authorisation';
/** `failed`: 5xx. `released`: a repeat reaches the bank. */
type Expected = 'accepted' | 'refused' | 'in-doubt' | 'released' | 'failed';

interface Answer extends StubResponse {
  readonly name: string;
  /** The payment that an initiation then belongs to; it can be in no other answer. */
  readonly paymentId?: string;
}

interface Row {
  readonly expected: Expected;
  readonly operations: readonly OperationName[];
  readonly answers: readonly Answer[];
}

const all: readonly OperationName[] = ['initiation', 'cancellation', 'authorisation'];
const initiations: readonly OperationName[] = ['initiation'];
const others: readonly OperationName[] = ['cancellation', 'authorisation'];

const type = (contentType: string): Field => ['Content-Type', contentType];
const coding = (name: string): Field => ['Content-Encoding', name];
const utf16 = (text: string, mark = '') => Buffer.from(mark + text, 'utf16le');
const json = (status: number, body: unknown, headers: readonly Field[] = []): StubResponse => ({
  status,
  headers: [type('application/json'), ...headers],
  body: JSON.stringify(body),
});
const paid = (paymentId: string) => JSON.stringify({ transactionStatus: 'RCVD', paymentId });
const message = (code: string, category = 'ERROR') => ({ tppMessages: [{ category, code }] });
const page =
  '<!DOCTYPE html>\n<html><head><title>Maintenance</title></head><body>Back at 6 &nbsp;</body></html>';
const linkTo = (id: string) => `https://api.bank.example/psd2/v1/payments/sepa-credit-transfers/${id}`;

const rows: readonly Row[] = [
  {
    expected: 'accepted',
    operations: initiations,
    answers: [
      { name: 'JSON', paymentId: 'a1', ...json(201, { paymentId: 'a1' }) },
      { name: 'a 202', paymentId: 'a2', ...json(202, { paymentId: 'a2' }) },
      { name: 'a 302 with JSON', paymentId: 'a3', ...json(302, { paymentId: 'a3' }, [['Location', '/sca']]) },
      { name: 'a 400', paymentId: 'a4', ...json(400, { paymentId: 'a4', ...message('FORMAT_ERROR') }) },
      { name: 'a 401', paymentId: 'a5', ...json(401, { paymentId: 'a5' }) },
      { name: 'a 409', paymentId: 'a6', ...json(409, { paymentId: 'a6' }) },
      { name: 'a 429', paymentId: 'a7', ...json(429, { paymentId: 'a7' }) },
      {
        name: 'RJCT with an id',
        paymentId: 'a8',
        ...json(201, { paymentId: 'a8', transactionStatus: 'RJCT' }),
      },
      {
        name: 'a number beyond 2^53',
        paymentId: '90071992547409931234',
        status: 201,
        body: '{"paymentId":90071992547409931234}',
      },
      {
        name: 'HAL',
        paymentId: 'a9',
        status: 201,
        headers: [type('application/hal+json')],
        body: paid('a9'),
      },
      {
        name: 'XML',
        paymentId: 'a10',
        status: 201,
        headers: [type('application/xml')],
        body: '<?xml version="1.0"?><r:Response xmlns:r="urn:r"><r:paymentId>a10</r:paymentId></r:Response>',
      },
      { name: 'JSON with a byte order mark', paymentId: 'a11', status: 201, body: `\ufeff${paid('a11')}` },
      {
        name: 'JSON as text/plain',
        paymentId: 'a12',
        status: 201,
        headers: [type('text/plain')],
        body: paid('a12'),
      },
      {
        name: 'JSON as text/html',
        paymentId: 'a13',
        status: 201,
        headers: [type('text/html')],
        body: paid('a13'),
      },
      { name: 'UTF-16 with a mark', paymentId: 'a14', status: 201, body: utf16(paid('a14'), '\ufeff') },
      { name: 'UTF-16 without a mark', paymentId: 'a15', status: 201, body: utf16(paid('a15')) },
      {
        name: 'zstd',
        paymentId: 'a16',
        status: 201,
        headers: [coding('zstd')],
        body: zstdCompressSync(paid('a16')),
      },
      { name: 'gzip', paymentId: 'a17', status: 201, headers: [coding('gzip')], body: gzipSync(paid('a17')) },
      {
        name: 'br',
        paymentId: 'a18',
        status: 201,
        headers: [coding('br')],
        body: brotliCompressSync(paid('a18')),
      },
      {
        name: 'deflate',
        paymentId: 'a19',
        status: 201,
        headers: [coding('deflate')],
        body: deflateSync(paid('a19')),
      },
      { name: 'a Location', paymentId: 'a20', status: 201, headers: [['Location', linkTo('a20')]] },
      {
        name: 'a Location in JSON',
        paymentId: 'a21',
        status: 201,
        headers: [['Location', JSON.stringify({ href: linkTo('a21') })]],
      },
      { name: 'a self link', paymentId: 'a22', ...json(201, { _links: { self: { href: linkTo('a22') } } }) },
      { name: 'a self link as text', paymentId: 'a23', ...json(201, { _links: { self: linkTo('a23') } }) },
    ],
  },
  {
    expected: 'accepted',
    operations: others,
    answers: [
      json(200, { transactionStatus: 'CANC' }),
      json(202, { scaStatus: 'received' }),
      { status: 204 },
      { status: 200 },
      { status: 201, headers: [type('text/plain')], body: 'ok' },
    ].map((answer, index) => ({ name: `answer ${index}`, ...answer })),
  },
  {
    expected: 'refused',
    operations: all,
    answers: [
      { name: 'RJCT', ...json(201, { transactionStatus: 'RJCT' }) },
      { name: 'RJCT with 200', ...json(200, { transactionStatus: 'RJCT', paymentId: '' }) },
      { name: 'an error with 200', ...json(200, message('PRODUCT_INVALID')) },
      { name: 'an error with 302', ...json(302, message('SERVICE_BLOCKED')) },
      { name: 'RJCT in pain.002', status: 200, body: '<D><GrpSts>RJCT</GrpSts></D>' },
      { name: 'a 400', ...json(400, message('FORMAT_ERROR')) },
      { name: 'a 403', status: 403 },
      { name: 'a 404', ...json(404, message('RESOURCE_UNKNOWN')) },
      { name: 'a 409', ...json(409, message('STATUS_INVALID')) },
      { name: 'a 422 that cannot be read', status: 422, headers: [coding('compress')], body: 'x' },
    ],
  },
  {
    expected: 'refused',
    operations: ['authorisation'],
    answers: [
      { name: 'a wrong password', ...json(401, message('PSU_CREDENTIALS_INVALID')) },
      { name: 'a 401 without a body', status: 401 },
      { name: 'a 401 without a code', ...json(401, {}) },
      { name: 'a 401 that cannot be read', status: 401, headers: [coding('compress')], body: 'x' },
      { name: 'problem+json', ...json(401, { code: 'PSU_CREDENTIALS_INVALID' }) },
    ],
  },
  {
    expected: 'in-doubt',
    operations: initiations,
    answers: [
      { name: 'a web page', status: 200, headers: [type('text/html; charset=utf-8')], body: page },
      { name: 'a web page as JSON', status: 201, headers: [type('application/json')], body: page },
      { name: 'a redirect', status: 302, headers: [['Location', 'https://bank.example/maintenance']] },
      {
        name: 'a redirect to a page',
        status: 302,
        headers: [['Location', '/payments/info/maintenance.html']],
      },
      { name: 'nothing', status: 200 },
      { name: 'a 204', status: 204 },
      { name: 'an empty object', ...json(201, {}) },
      { name: 'an empty id', ...json(201, { paymentId: ' ', transactionStatus: 'RCVD' }) },
      { name: 'cut JSON', status: 201, headers: [type('application/json')], body: '{"paymentId":"lost' },
      { name: 'an unknown coding', status: 201, headers: [coding('compress')], body: paid('lost') },
      { name: 'damaged gzip', status: 201, headers: [coding('gzip')], body: 'no gzip' },
      {
        name: 'an unknown charset',
        status: 201,
        headers: [type('application/json; charset=x-foo')],
        body: paid('lost'),
      },
      { name: 'a 408', status: 408 },
      { name: 'a link to another service', ...json(201, { _links: { self: '/v1/bulk-payments/p/lost' } }) },
      { name: 'a warning', ...json(200, message('WARNING', 'WARNING')) },
    ],
  },
  {
    expected: 'in-doubt',
    operations: others,
    answers: [
      { name: 'a web page', status: 200, headers: [type('text/html')], body: page },
      { name: 'a web page without a label', status: 200, body: page },
      { name: 'a web page with 401', status: 401, headers: [type('Text/HTML;charset=utf-8')], body: page },
      { name: 'a web page with 429', status: 429, headers: [type('text/html')], body: page },
      { name: 'a redirect', status: 303, headers: [['Location', 'https://bank.example/maintenance']] },
      { name: 'a 304', status: 304 },
      { name: 'a 408', status: 408 },
    ],
  },
  {
    expected: 'released',
    operations: all,
    answers: [
      { name: 'a 401', ...json(401, message('TOKEN_INVALID')) },
      { name: 'an expired token', ...json(401, message('TOKEN_EXPIRED')) },
      { name: 'a certificate', ...json(401, message('CERTIFICATE_BLOCKED')) },
      { name: 'a signature in problem+json', ...json(401, { code: 'SIGNATURE_INVALID' }) },
      { name: 'a 429', ...json(429, message('ACCESS_EXCEEDED'), [['Retry-After', '0']]) },
    ],
  },
  {
    expected: 'failed',
    operations: all,
    answers: [
      { name: 'a 500', ...json(500, message('INTERNAL_SERVER_ERROR')) },
      { name: 'a 501', status: 501 },
      { name: 'a 502', status: 502, headers: [type('text/html')], body: page },
      { name: 'a 503', ...json(503, message('SERVICE_UNAVAILABLE')) },
      { name: 'a 504', status: 504 },
    ],
  },
  {
    expected: 'failed',
    operations: initiations,
    answers: [
      { name: 'a 500 with a payment', paymentId: 'f1', ...json(500, { paymentId: 'f1' }) },
      {
        name: 'a 501 with a payment in XML',
        paymentId: 'f2',
        status: 501,
        body: '<r><paymentId>f2</paymentId></r>',
      },
      {
        name: 'a 502 with a payment in Location',
        paymentId: 'f3',
        status: 502,
        headers: [['Location', linkTo('f3')]],
      },
      {
        name: 'a 503 with a payment in gzip',
        paymentId: 'f4',
        status: 503,
        headers: [coding('gzip')],
        body: gzipSync(paid('f4')),
      },
      {
        name: 'a 504 with a payment in its self link',
        paymentId: 'f5',
        ...json(504, { _links: { self: linkTo('f5') } }),
      },
    ],
  },
];

/** One answer of each outcome, for the responses that arrive after the deadline. */
const lateAnswers: Readonly<Record<Expected, (operation: OperationName) => StubResponse>> = {
  accepted: (operation) =>
    operation === 'initiation' ? json(201, { paymentId: 'late' }) : json(200, { transactionStatus: 'CANC' }),
  refused: () => json(200, message('SERVICE_BLOCKED')),
  released: () => json(401, message('TOKEN_EXPIRED')),
  'in-doubt': () => ({ status: 302, headers: [['Location', 'https://bank.example/maintenance']] }),
  failed: () => json(503, message('SERVICE_UNAVAILABLE')),
};

/** A gateway, or several with the same state, in front of a stub. */
class Bench {
  readonly bank: StubBank;
  readonly gateways: readonly GatewayUnderTest[];
  answer: StubResponse = {};
  /** Answers to single requests, by their X-Request-ID. */
  readonly lateAnswers = new Map<string, Promise<StubResponse>>();

  static async start(
    t: TestContext,
    state: Sections,
    instances: number,
    more: Sections = {},
  ): Promise<Bench> {
    let bench: Bench | undefined;
    const bank = await startStubBank(
      t,
      (request) => bench?.lateAnswers.get(request.header('x-request-id')) ?? bench?.answer ?? {},
    );
    const gateways = await Promise.all(
      Array.from({ length: instances }, () =>
        startGateway(t, {
          environments: { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl, standardVersion: '1.3.11' } },
          clients: clientSettings(),
          statusCache: { enabled: false },
          state,
          ...more,
        }),
      ),
    );
    bench = new Bench(bank, gateways);
    return bench;
  }

  constructor(bank: StubBank, gateways: readonly GatewayUnderTest[]) {
    this.bank = bank;
    this.gateways = gateways;
  }

  /** @param index of the gateway, any number */
  send({ headers = [], ...rest }: Call, index = 0, client: ClientName = 'shop') {
    const gateway = this.gatewayAt(index);
    return call(gateway.url, { ...rest, headers: [...headers, ['X-API-Key', apiKeyOf(client)]] });
  }

  gatewayAt(index: number): GatewayUnderTest {
    return this.gateways[index % this.gateways.length] ?? assert.fail();
  }

  /** Why the bank's answer to this request is in doubt; `undefined` if it is not listed. */
  async doubtAbout(requestId: string): Promise<string | undefined> {
    const reply = await callAdminApi(this.gatewayAt(1), 'GET', '/api/in-doubt');
    const listed: readonly { readonly xRequestId: string; readonly why: string }[] = JSON.parse(reply.text);
    return listed.find(({ xRequestId }) => xRequestId === requestId)?.why;
  }

  async newCall(operation: OperationName): Promise<Call & { readonly requestId: string }> {
    const requestId = randomUUID();
    if (operation === 'initiation') return { ...initiation, requestId };
    const paymentId = `known-${requestId}`;
    this.answer = json(201, { paymentId });
    assert.equal((await this.send(initiation)).status, 201);
    const path = `${transfersPath}/${paymentId}`;
    if (operation === 'cancellation') return { method: 'DELETE', path, requestId };
    const headers = [type('application/json')];
    return { method: 'POST', path: `${path}/authorisations`, headers, body: '{}', requestId };
  }

  logged(requestId: string, text: string): number {
    return this.gateways
      .flatMap(({ logLines }) => logLines)
      .filter((line) => line.includes(requestId) && line.includes(text)).length;
  }
}

async function assertMeans(
  bench: Bench,
  operation: OperationName,
  answer: Answer,
  expected: Expected,
): Promise<void> {
  const request = await bench.newCall(operation);
  const { requestId } = request;
  bench.answer = answer;
  const receivedBefore = bench.bank.requests.length;
  const first = await bench.send(request);
  const what = `${operation}: ${answer.name}: ${first.status} ${first.text}`;
  assert.equal(first.status, answer.status ?? 200, what);
  assert.equal(first.header('Penstock-Error'), undefined, what);
  assert.equal(first.header('Penstock-Outcome'), expected === 'in-doubt' ? 'unknown' : undefined, what);
  if (expected === 'in-doubt') {
    if (first.status !== 304) assert.deepEqual(first.body, Buffer.from(answer.body ?? ''), what);
    const location = (answer.headers ?? []).find(([name]) => name === 'Location')?.[1];
    assert.equal(first.header('Location'), location, what);
  }

  const repeat = await bench.send(request, 1);
  const timesReceived = bench.bank.requests.length - receivedBefore;
  const why = await bench.doubtAbout(requestId);
  assert.equal(timesReceived, expected === 'released' ? 2 : 1, what);
  const isListed = expected === 'in-doubt' || expected === 'failed';
  assert.equal(why !== undefined, isListed, `${what} (${why})`);
  assert.equal(bench.logged(requestId, 'a payment is in doubt'), isListed ? 1 : 0, what);
  if (expected === 'in-doubt') {
    assert.equal(repeat.header('Penstock-Error'), 'DUPLICATE_IN_DOUBT', what);
    assert.match(why ?? '', new RegExp(`^the bank answered ${answer.status ?? 200}`), what);
  } else {
    assert.equal(repeat.status, first.status, what);
    assert.deepEqual(repeat.body, first.body, what);
    assert.equal(repeat.header('Idempotent-Replayed'), expected === 'released' ? undefined : 'true', what);
  }

  if (answer.paymentId !== undefined) await assertOwned(bench, answer.paymentId, what);
}

/** Only the tenant that has initiated the payment can read it. */
async function assertOwned(bench: Bench, paymentId: string, what: string): Promise<void> {
  const path = `${transfersPath}/${paymentId}/status`;
  bench.answer = json(200, { transactionStatus: 'ACTC' });
  await until(10_000, `its owner reads the status (${what})`, async () => {
    const { status } = await bench.send({ method: 'GET', path }, 1);
    assert.ok(status === 200 || status === 503, what); // the gateway pauses after a 429
    return status === 200;
  });
  const foreign = await bench.send({ method: 'GET', path }, 0, 'rival');
  assert.equal(foreign.header('Penstock-Error'), 'PAYMENT_UNKNOWN', what);
}

const kinds: readonly {
  readonly name: string;
  readonly skip?: string | false;
  readonly instances: number;
  readonly state: (t: TestContext) => Sections | Promise<Sections>;
}[] = [
  { name: 'in SQLite', instances: 1, state: (t) => ({ file: `${temporaryFolder(t)}/state` }) },
  {
    name: 'in PostgreSQL, with two instances and Redis',
    skip: skipWithoutRedis,
    instances: 2,
    state: async (t) => ({
      postgres: await newMigratedPostgres(),
      redis: await sharedRedisUrl(t),
      prefix: `test-${randomUUID()}:`,
    }),
  },
];

for (const { name, skip = false, instances, state } of kinds)
  describe(`the bank's answer to a write, with the state ${name}`, { skip }, () => {
    for (const { expected, operations, answers } of rows)
      for (const operation of operations)
        test(`${operation}: is ${expected} for ${answers.map((answer) => answer.name).join(', ')}`, async (t) => {
          const bench = await Bench.start(t, await state(t), instances);
          for (const answer of answers) await assertMeans(bench, operation, answer, expected);
        });

    for (const operation of all)
      for (const [status, code] of [
        [401, 'TOKEN_INVALID'],
        [429, 'ACCESS_EXCEEDED'],
      ] as const)
        test(`${operation}: puts a 409 in doubt after a ${status}, which was released`, async (t) => {
          const bench = await Bench.start(t, await state(t), instances);
          const request = await bench.newCall(operation);
          bench.answer = json(status, message(code));
          for (const index of [0, 1]) assert.equal((await bench.send(request, index)).status, status);
          bench.answer = json(409, message('STATUS_INVALID'));
          const answered = await bench.send(request, 1);
          assert.equal(answered.status, 409);
          assert.equal(answered.header('Penstock-Outcome'), 'unknown');
          const repeat = await bench.send(request);
          assert.equal(repeat.header('Penstock-Error'), 'DUPLICATE_IN_DOUBT');
          assert.match(
            (await bench.doubtAbout(request.requestId)) ?? '',
            /^the bank answered 409 after an earlier/,
          );
        });

    for (const operation of all)
      test(`${operation}: means the same if it arrives after the deadline`, async (t) => {
        const bench = await Bench.start(t, await state(t), instances, { deadlines: { write: '1s' } });
        const arrival = Promise.withResolvers<void>();
        const sent = [];
        for (const expected of Object.keys(lateAnswers) as Expected[]) {
          // the keys of a record are its keys
          const request = await bench.newCall(operation);
          const answer = lateAnswers[expected](operation);
          bench.lateAnswers.set(
            request.requestId,
            arrival.promise.then(() => answer),
          );
          sent.push({ expected, request, answer });
        }
        for (const first of await Promise.all(sent.map(({ request }) => bench.send(request))))
          assert.equal(first.header('Penstock-Error'), 'OUTCOME_UNKNOWN', first.text);
        arrival.resolve();
        for (const { expected, request, answer } of sent) {
          const { requestId } = request;
          await until(
            10_000,
            `the late answer is recorded: ${expected}`,
            () => bench.logged(requestId, 'late response') === 1,
          );
          const repeat = await bench.send(request, 1);
          const what = `${expected}: ${repeat.status} ${repeat.text}`;
          const isReplayed = expected !== 'released' && expected !== 'in-doubt';
          assert.equal(repeat.header('Idempotent-Replayed'), isReplayed ? 'true' : undefined, what);
          assert.equal(
            repeat.header('Penstock-Error'),
            expected === 'in-doubt' ? 'DUPLICATE_IN_DOUBT' : undefined,
            what,
          );
          if (expected !== 'in-doubt') assert.equal(repeat.status, answer.status, what);
          const timesReceived = bench.bank.requests.filter(
            (one) => one.header('x-request-id') === requestId,
          ).length;
          assert.equal(timesReceived, expected === 'released' ? 2 : 1, what);
          const isListed = (await bench.doubtAbout(requestId)) !== undefined;
          assert.equal(isListed, expected === 'in-doubt' || expected === 'failed', what);
        }
        if (operation === 'initiation') await assertOwned(bench, 'late', 'a late answer');
      });

    test('counts only attempts that were sent as earlier ones of a 409', async (t) => {
      const bench = await Bench.start(t, await state(t), instances);
      const request = await bench.newCall('initiation');
      await bench.bank.close();
      assert.equal((await bench.send(request)).header('Penstock-Error'), 'UPSTREAM_UNREACHED');
      const next = await startStubBank(t, () => json(409, message('STATUS_INVALID')));
      for (const gateway of bench.gateways)
        await gateway.reload({
          environments: { active: 'sandbox', sandbox: { baseUrl: next.baseUrl, standardVersion: '1.3.11' } },
          clients: clientSettings(),
          statusCache: { enabled: false },
          state: await state(t),
        });
      assert.equal((await bench.send(request, 1)).header('Penstock-Outcome'), undefined);
      assert.equal((await bench.send(request)).header('Idempotent-Replayed'), 'true');
    });
  });

describe('an answer that leaves the outcome in doubt', () => {
  const webPage: StubResponse = { status: 200, headers: [type('text/html')], body: page };

  test('is a failure for the circuit, but a 409 after a released attempt is none', async (t) => {
    const answers: StubResponse[] = [];
    const bank = await startStubBank(t, () => answers.shift() ?? webPage);
    const environments = { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl } };
    const gateway = await startGateway(t, { environments, circuit: { minimumCalls: 3, openFor: '1min' } });
    for (let time = 0; time < 3; time++) {
      answers.push(json(401, message('TOKEN_EXPIRED')), json(409, message('STATUS_INVALID')));
      const request = { ...initiation, requestId: randomUUID() };
      await call(gateway.url, request);
      assert.equal((await call(gateway.url, request)).header('Penstock-Outcome'), 'unknown');
    }
    for (let time = 0; time < 3; time++)
      assert.equal((await call(gateway.url, initiation)).header('Penstock-Outcome'), 'unknown');
    assert.equal((await call(gateway.url, initiation)).header('Penstock-Error'), 'CIRCUIT_OPEN');
  });

  test('is described to the TPP that looks its request up, and to operators', async (t) => {
    const bank = await startStubBank(t, () => webPage);
    const environments = { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl } };
    const gateway = await startGateway(t, { environments, clients: clientSettings(), ...selfService });
    const requestId = randomUUID();
    const headers = [...initiation.headers, ['X-API-Key', apiKeyOf('shop')]] as const;
    assert.equal((await call(gateway.url, { ...initiation, headers, requestId })).status, 200);
    const { initiation: outcome, requests } = await reportOf(gateway, 'shop', requestId);
    assert.equal(outcome?.state, 'in-doubt');
    assert.match(
      requests[0]?.explanation ?? '',
      /^The bank answered 200, which leaves open what it has done\. .*\(a web page\)\. .* do not initiate again/,
    );
    const decisions = await callAdminApi(gateway, 'GET', `/api/decisions/${requestId}`);
    assert.match(decisions.text, /"what":"unreadable","why":"a web page"/);
  });
});
