/** All examples for callers decide in the same way what an answer means, as the table in docs/callers/submit-payments.md has it. */

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { createPayment, submitPayment } from '../../examples/callers/submit-payment.ts';
import { createTypedClient, payOnce } from '../../examples/callers/typed-client.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { startCommand } from '../kit/command.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onPath } from '../kit/on-path.ts';
import { createPaymentStore } from '../kit/payment-store.ts';
import { startTextServer } from '../kit/text-server.ts';
import { until } from '../kit/within.ts';

const apiKey = 'key of shop';
const clients = [{ name: 'shop', apiKeySha256: createHash('sha256').update(apiKey).digest('hex') }];
const payment = {
  instructedAmount: { currency: 'EUR', amount: '123.50' },
  debtorAccount: { iban: 'DE89370400440532013000' },
  creditorName: 'Merchant123',
  creditorAccount: { iban: 'DE02100100109307118603' },
};

/** What an example has found out about one payment: `paid ID`, `refused`, `mismatch`, or something else in case of a fault. */
type Example = (t: TestContext, url: string) => Promise<string>;

const errorOf = (thrown: unknown) => outcomeIn(String(thrown));

function outcomeIn(text: string): string {
  if (/belongs to another request, which may have made a payment/.test(text)) return 'mismatch';
  if (/the payment was refused/.test(text)) return 'refused';
  const [, id] = /^paid: (\S+)$/m.exec(text) ?? [];
  return id === undefined ? text : `paid ${id}`;
}

const runProgram =
  (program: string, file: string): Example =>
  async (t, url) => {
    const example = startCommand(t, program, [`examples/callers/${file}`, url, apiKey]);
    await example.exitCode();
    return outcomeIn(example.stdout() + example.stderr());
  };

const examples: Readonly<Record<string, Example>> = {
  async 'submit-payment.ts'(_t, url) {
    const store = createPaymentStore();
    const stored = await createPayment(store, {
      path: '/payments/sepa-credit-transfers',
      headers: { 'Content-Type': 'application/json', 'PSU-IP-Address': '192.0.2.7' },
      body: JSON.stringify(payment),
    });
    const gateway = { url, apiKey, accessToken: async () => 'a token', patienceMs: 25_000 };
    const outcome = await submitPayment(store, stored, gateway);
    if (outcome?.kind === 'accepted') return `paid ${outcome.paymentId}`;
    return outcome?.kind === 'rejected' ? 'refused' : (outcome?.kind ?? 'not known');
  },
  async 'typed-client.ts'(_t, url) {
    const order = { requestId: randomUUID(), payment, wasSent: false };
    const paid = await payOnce(createTypedClient(url, apiKey), order, 25_000).catch(errorOf);
    return typeof paid === 'object' ? `paid ${paid.paymentId}` : (paid ?? 'not known');
  },
  'pay.py': runProgram('python3', 'pay.py'),
  'pay.sh': runProgram('sh', 'pay.sh'),
};

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Whether the connection closes before the end of the body. */
  readonly isCut?: boolean;
}

const page = { headers: { 'Content-Type': 'text/html' }, body: '<html>none of the bank</html>' };
const ofBank = (
  status: number,
  body: object | string,
  headers: Readonly<Record<string, string>> = {},
): Answer => ({
  status,
  headers: { 'Penstock-Environment': 'sandbox', 'Content-Type': 'application/json', ...headers },
  body: typeof body === 'string' ? body : JSON.stringify(body),
});
const ofGateway = (status: number, code: string, more: object = {}): Answer =>
  ofBank(
    status,
    { tppMessages: [{ category: 'ERROR', code: 'FORMAT_ERROR', text: `${code}: no.` }], ...more },
    { 'Penstock-Error': code },
  );
const made = ofBank(201, { transactionStatus: 'RCVD', paymentId: 'p1' });
const link = 'http://gateway.example/berlingroup/v1/payments/sepa-credit-transfers/p2';

/** Answers initiations with these, then with `made`; reads and cancellations as a gateway does. */
async function startScript(t: TestContext, answers: readonly (Answer | string)[]) {
  const script = { url: '', initiations: 0 };
  script.url = await startTextServer(t, (request) => {
    const answer = request.startsWith('POST')
      ? (answers[script.initiations++] ?? made)
      : readOrCancellation(request);
    return typeof answer === 'string' ? answer : textOf(answer);
  });
  return script;
}

const readOrCancellation = (request: string) =>
  request.startsWith('GET') ? ofBank(200, { transactionStatus: 'RCVD' }) : ofBank(204, '');

function textOf({ status, headers = {}, body = '', isCut = false }: Answer): string {
  const fields = { ...headers, 'Content-Length': String(body.length + (isCut ? 1 : 0)), Connection: 'close' };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Status\r\n${lines.join('')}\r\n${body}`;
}

const cases: Readonly<Record<string, readonly [answers: readonly (Answer | string)[], outcome: string]>> = {
  'a web page of a proxy with 404': [[{ status: 404, ...page }], 'paid p1'],
  'a web page of a proxy with 200': [[{ status: 200, ...page }], 'paid p1'],
  'a payment in an answer that is not from the gateway': [
    [{ ...made, headers: {}, body: '{"paymentId":"p2"}' }],
    'paid p1',
  ],
  'an answer that is cut off': [[{ ...ofBank(201, { paymentId: 'p2' }), isCut: true }], 'paid p1'],
  'an answer that is not HTTP': [['no HTTP\r\n\r\n'], 'paid p1'],
  'no answer': [[''], 'paid p1'],
  'an answer that leaves the outcome open': [[ofBank(201, '', { 'Penstock-Outcome': 'unknown' })], 'paid p1'],
  'a success without JSON': [[ofBank(201, '<html>')], 'paid p1'],
  'a 5xx of the bank with a payment': [[ofBank(500, { paymentId: 'p2' })], 'paid p1'],
  'an expired token': [[ofBank(401, {})], 'paid p1'],
  'a bank that is too busy': [[ofBank(429, {})], 'paid p1'],
  'a gateway that is too busy': [[ofGateway(503, 'OVERLOADED')], 'paid p1'],
  'a first attempt that is in progress': [[ofGateway(409, 'DUPLICATE_IN_FLIGHT')], 'paid p1'],
  'spaces in the JSON': [[ofBank(201, '{\n  "paymentId" : "p2"\n}')], 'paid p2'],
  'a success with another status': [[ofBank(202, { paymentId: 'p2' })], 'paid p2'],
  'a 401 of the bank that names a payment': [[ofBank(401, { paymentId: 'p2' })], 'paid p2'],
  'a payment that only a header names': [[ofBank(201, {}, { Location: link })], 'paid p2'],
  'a payment that an operator knows': [
    [ofGateway(409, 'DUPLICATE_IN_DOUBT', { paymentId: 'p2' })],
    'paid p2',
  ],
  'a refusal with a success status': [[ofBank(201, { transactionStatus: 'RJCT' })], 'refused'],
  'a 400 of the bank in its own format': [[ofBank(400, { error: 'bad' })], 'refused'],
  'a 403 of the bank with a web page': [[ofBank(403, page.body, page.headers)], 'refused'],
  'a refusal of the gateway': [[ofGateway(401, 'CLIENT_UNKNOWN')], 'refused'],
  'a refusal of the gateway after an attempt whose outcome is unknown': [
    [ofGateway(504, 'OUTCOME_UNKNOWN'), ofGateway(403, 'ENVIRONMENT_FORBIDDEN')],
    'paid p1',
  ],
  'an X-Request-ID of another request': [[ofGateway(409, 'DUPLICATE_MISMATCH')], 'mismatch'],
};

const rounded = '{"transactionStatus":"RCVD","paymentId":12345678901234567890}';

/** Of the programs in TypeScript. */
const casesOfTypeScript: typeof cases = {
  'a refusal that names a payment in a link': [
    [ofBank(403, { _links: { self: { href: link } } })],
    'paid p2',
  ],
  'a refusal that names a payment in a link that is a text': [
    [ofBank(403, { _links: { self: link } })],
    'paid p2',
  ],
  'a success with a link that is a text': [[ofBank(201, { _links: { self: link } })], 'paid p2'],
  'a link to a payment beside a Location that names none': [
    [ofBank(201, { _links: { self: { href: link } } }, { Location: '/elsewhere' })],
    'paid p2',
  ],
  'links that are no texts': [[ofBank(400, { _links: { self: { href: null } } })], 'refused'],
  'a paymentId that is a number': [[ofBank(201, { paymentId: 42 })], 'paid 42'],
  'a paymentId that is a number with too many digits': [[ofBank(201, rounded)], 'paid p1'],
  'a refusal with a paymentId that is a number with too many digits': [[ofBank(403, rounded)], 'paid p1'],
  'a paymentId with too many digits, and a link': [[ofBank(201, rounded, { Location: link })], 'paid p2'],
  'a Location whose host is called payments': [
    [ofBank(201, {}, { Location: 'http://payments/berlingroup/v1/payments/sepa-credit-transfers/p2' })],
    'paid p2',
  ],
  'a Location that is JSON': [[ofBank(201, {}, { Location: JSON.stringify({ href: link }) })], 'paid p2'],
  'a Location with another payment in its query': [
    [ofBank(403, {}, { Location: 'http://bank.example/?back=/payments/sepa-credit-transfers/p2' })],
    'refused',
  ],
  'a payment in JSON with the label of a web page': [
    [ofBank(201, { paymentId: 'p2' }, { 'Content-Type': 'text/html' })],
    'paid p2',
  ],
  'a Retry-After that is not a number of seconds': [
    [ofBank(429, {}, { 'Retry-After': 'Sun, 06 Nov 1994 08:49:37 GMT' })],
    'paid p1',
  ],
};

for (const [name, run] of Object.entries(examples)) {
  const program = name.endsWith('.py') ? 'python3' : 'curl';
  const skip = !name.endsWith('.ts') && onPath(program) === undefined && `${program} is not installed`;

  describe(`the example ${name}`, { concurrency: 12, skip }, () => {
    const ownCases = name.endsWith('.ts') ? casesOfTypeScript : {};
    for (const [what, [answers, outcome]] of Object.entries({ ...cases, ...ownCases }))
      test(`says "${outcome}" after ${what}`, async (t) => {
        const script = await startScript(t, answers);
        assert.equal(await run(t, script.url), outcome);
        if (!outcome.startsWith('paid')) assert.equal(script.initiations, 1, 'it repeats the request');
      });

    test('learns that a payment was made from an operator who knows it', async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t, { clients, idempotency: { lateAnswer: '0s' } });
      bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
      const outcome = run(t, `${gateway.url}/berlingroup/v1`);
      const inDoubt = async () => JSON.parse((await callAdminApi(gateway, 'GET', '/api/in-doubt')).text);
      await until(10_000, 'the payment is in doubt', async () => (await inDoubt()).length > 0);
      const [{ id }] = await inDoubt();
      const paymentId = bank.payments[0]?.paymentId;
      const body = { outcome: 'happened', paymentId, reason: 'the bank says so' };
      assert.equal((await callAdminApi(gateway, 'POST', `/api/in-doubt/${id}`, body)).status, 200);
      assert.equal(await outcome, `paid ${paymentId}`);
      assert.equal(bank.payments.length, 1);
    });
  });
}

for (const seconds of ['-1', '0.05', 'Infinity'])
  test(`the example submit-payment.ts makes its own pause after Retry-After: ${seconds}`, async (t) => {
    const busy = ofBank(429, {}, { 'Retry-After': seconds });
    const script = await startScript(t, Array(100).fill(busy));
    const gateway = { url: script.url, apiKey, accessToken: async () => 'a token', patienceMs: 900 };
    const store = createPaymentStore();
    const stored = await createPayment(store, {
      path: '/payments/sepa-credit-transfers',
      headers: {},
      body: '{}',
    });
    assert.equal(await submitPayment(store, stored, gateway), undefined);
    assert.equal(script.initiations, 1); // the first pause is longer than the patience
  });
