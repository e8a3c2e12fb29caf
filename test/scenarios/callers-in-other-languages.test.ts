/** The examples for callers in Python and for curl pay once and cancel, and say what they know after unusual answers. */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { root, startCommand } from '../kit/command.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { onPath } from '../kit/on-path.ts';
import { listen } from '../kit/ports.ts';
import { startTextServer } from '../kit/text-server.ts';
import { within } from '../kit/within.ts';

const apiKey = 'key of shop';
const clients = [{ name: 'shop', apiKeySha256: createHash('sha256').update(apiKey).digest('hex') }];

describe('the example for callers', { concurrency: true }, () => {
  for (const [program, file, said] of [
    [
      'python3',
      'pay.py',
      /not known yet: 429[\s\S]*paid: (\S+)\npaid before: \1\nstatus: RCVD\ncancelled: 204\n$/,
    ],
    ['sh', 'pay.sh', /not known yet: 429[\s\S]*paid: \S+\n\{"transactionStatus":"RCVD"\}\ncancelled: 204\n$/],
  ] as const)
    test(`${file} pays once, waits for the status and cancels`, {
      skip: onPath(program) === undefined && `${program} is not installed`,
    }, async (t) => {
      const { bank, gateway } = await startGatewayWithBank(t, { clients });
      bank.injectFault({ name: 'status', status: 429 }, { times: 1 });
      const url = `${gateway.url}/berlingroup/v1`;
      const example = startCommand(t, program, [`examples/callers/${file}`, url, apiKey]);
      assert.equal(await within(60_000, 'the example ends', example.exitCode()), 0, example.stderr());
      assert.match(example.stdout(), said);
      assert.equal(bank.payments.length, 1);
      assert.equal(bank.requests.filter(({ method }) => method === 'DELETE').length, 1);
    });
});

/** Answers of the gateway, as bytes. */
function ofBank(status: number, body: object | string, headers: Readonly<Record<string, string>> = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const length = String(Buffer.byteLength(text));
  const fields = {
    'Penstock-Environment': 'sandbox',
    'Content-Length': length,
    Connection: 'close',
    ...headers,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Status\r\n${lines.join('')}\r\n${text}`;
}
const ofGateway = (status: number, code: string, headers: Readonly<Record<string, string>> = {}) =>
  ofBank(
    status,
    { tppMessages: [{ category: 'ERROR', text: code }] },
    { 'Penstock-Error': code, ...headers },
  );
const cut = ofBank(200, '{', { 'Content-Length': '100' });
const path = '/payments/sepa-credit-transfers';
const link = `http://gateway.example/berlingroup/v1${path}/p2`;

interface Script {
  readonly initiations?: readonly string[];
  readonly read?: string;
  readonly cancellation?: string;
}

/** Answers the initiations with these, then with the last of them. */
async function startScript(
  t: TestContext,
  { initiations = [ofBank(201, { paymentId: 'p1' })], ...rest }: Script,
) {
  const requests: { method: string; path: string; id: string }[] = [];
  const answerTo = (method: string) => {
    if (method === 'GET') return rest.read ?? ofBank(200, { transactionStatus: 'RCVD' });
    if (method === 'DELETE') return rest.cancellation ?? ofBank(204, '');
    const made = requests.filter((request) => request.method === 'POST').length;
    return initiations[made - 1] ?? initiations.at(-1) ?? '';
  };
  const url = await startTextServer(t, (request) => {
    const [head = ''] = request.split('\r\n\r\n', 1);
    const [method = '', target = ''] = head.split(' ', 2);
    const [, id = ''] = /x-request-id: (\S+)/i.exec(head) ?? [];
    requests.push({ method, path: target, id });
    return answerTo(method);
  });
  return { url, requests };
}

const paidAs = (id: string, body: string | object, headers = {}, status = 201) =>
  [id, ofBank(status, body, headers)] as const;

/** Answers that name a payment, with its id as the programs print it. */
const namings: Readonly<Record<string, readonly [id: string, answer: string]>> = {
  'a link in a 403': paidAs('p2', { _links: { self: { href: link } } }, {}, 403),
  'a link in a 409': paidAs(
    'p2',
    { _links: { status: { href: `${link}/status` }, self: { href: link } } },
    {},
    409,
  ),
  'a link that is a text': paidAs('p2', { _links: { self: link } }, {}, 403),
  'a link with escaped slashes': paidAs(
    'p2',
    `{"_links":{"self":{"href":"${link.replaceAll('/', '\\/')}"}}}`,
  ),
  'a link with another product': paidAs(
    'p2',
    { _links: { self: '/v1/payments/sepa-transfers/p2/status' } },
    {},
    403,
  ),
  'a link to a host called payments': paidAs(
    'p2',
    {},
    { Location: `http://payments/berlingroup/v1${path}/p2?a` },
  ),
  'a Location with JSON': paidAs('p2', {}, { Location: JSON.stringify({ href: link }) }),
  'a Location that leads elsewhere, and a link': paidAs(
    'p2',
    { _links: { self: link } },
    { Location: '/help' },
    403,
  ),
  'a number': paidAs('12345678901234567890', '{"paymentId":12345678901234567890}', {}, 403),
  'an id with a slash': paidAs('q7Hc2m/Zr+8VwA==', { paymentId: 'q7Hc2m/Zr+8VwA==' }),
  'an id with an escaped slash': paidAs('q7Hc2m/Zr', '{"paymentId":"q7Hc2m\\/Zr"}'),
  'an id with braces': paidAs('a{b}c', '{"transactionStatus":"RCVD","paymentId":"a{b}c"}'),
  'another payment after it': paidAs('p2', { paymentId: 'p2', _links: {}, related: { paymentId: 'other' } }),
  'another payment before it': paidAs('p2', { related: [{ of: { paymentId: 'other' } }], paymentId: 'p2' }),
  'an interim answer before it': [
    'p2',
    `HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n${ofBank(201, { paymentId: 'p2' })}`,
  ],
};

/** Answers after which a program must send the same request again. */
const openAnswers: Readonly<Record<string, string>> = {
  'a redirect to an address that is not valid': ofBank(302, '', {
    Location: 'http://[bad',
    'Penstock-Outcome': 'unknown',
  }),
  'a success with a link that is null': ofBank(201, { _links: { self: { href: null } } }),
  'a success with an id that is null': ofBank(201, { paymentId: null }),
  'a deeply nested success': ofBank(201, '['.repeat(100_000)),
  'a length that no memory can hold': ofBank(201, '{}', { 'Content-Length': '1000000000000000' }),
  'a length that is no number of 64 bits': ofBank(201, '{', { 'Content-Length': '99999999999999999999' }),
  'a pause that is negative': ofGateway(503, 'OVERLOADED', { 'Retry-After': '-1' }),
  'a pause that is no number': ofGateway(503, 'OVERLOADED', { 'Retry-After': 'inf' }),
};

/** Answers to the cancellation, and what a program says of it. */
const cancellations: Readonly<
  Record<string, readonly [answer: string, said: 'not known' | 'refused' | 'cancelled']>
> = {
  'no answer': ['', 'not known'],
  'an answer that is cut off': [cut, 'not known'],
  'a page of a proxy': ['HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n', 'not known'],
  'an answer that leaves the outcome open': [ofBank(200, '', { 'Penstock-Outcome': 'unknown' }), 'not known'],
  'a lost answer of the bank': [ofGateway(504, 'OUTCOME_UNKNOWN'), 'not known'],
  'an attempt that is in progress': [ofGateway(409, 'DUPLICATE_IN_FLIGHT'), 'not known'],
  'a timeout of the request': [ofGateway(408, 'REQUEST_TIMEOUT'), 'not known'],
  'a bank that is too busy': [ofBank(429, {}), 'not known'],
  'an expired token': [ofBank(401, {}), 'not known'],
  'a refusal': [ofBank(405, {}), 'refused'],
  'a refusal with a success status': [ofBank(200, { tppMessages: [{ category: 'ERROR' }] }), 'refused'],
  'a payer who must authorise it': [ofBank(202, { transactionStatus: 'RCVD' }), 'cancelled'],
};

for (const [program, file] of [
  ['python3', 'pay.py'],
  ['sh', 'pay.sh'],
] as const) {
  const needed = program === 'sh' ? 'curl' : program;
  const skip = onPath(needed) === undefined && `${needed} is not installed`;

  describe(`the example ${file}`, { concurrency: 12, skip }, () => {
    async function run(t: TestContext, script: Script, ...more: readonly string[]) {
      const { url, requests } = await startScript(t, script);
      const example = startCommand(t, program, [`examples/callers/${file}`, url, apiKey, ...more]);
      const code = await example.exitCode();
      return { url, requests, code, said: example.stdout() + example.stderr() };
    }

    for (const [what, [id, answer]] of Object.entries(namings))
      test(`finds the payment in an answer with ${what}`, async (t) => {
        const { said, requests, code } = await run(t, { initiations: [answer] });
        assert.match(said, /^paid: /m);
        assert.equal(/^paid: (.*)$/m.exec(said)?.[1], id);
        assert.equal(code, 0, said);
        const paths = requests.filter(({ method }) => method !== 'POST').map(({ path }) => path);
        const segments = paths.map((each) => each.slice(`${path}/`.length).replace(/\/status$/, ''));
        assert.deepEqual(segments.map(decodeURIComponent), [id, id]);
        assert.ok(!segments.join('').includes('/'), 'it percent-encodes the id');
      });

    for (const [what, answer] of Object.entries(openAnswers))
      test(`sends the same request again after ${what}`, async (t) => {
        const { said, requests, code } = await run(t, {
          initiations: [answer, ofBank(201, { paymentId: 'p1' })],
        });
        assert.match(said, /^not known yet: [\s\S]*^paid: p1$/m);
        assert.equal(code, 0, said);
        const ids = requests.filter(({ method }) => method === 'POST').map(({ id }) => id);
        assert.equal(new Set(ids).size, 1);
      });

    for (const [what, [answer, outcome]] of Object.entries(cancellations))
      test(`says that a cancellation is ${outcome} after ${what}`, async (t) => {
        const { url, said, requests, code } = await run(t, { cancellation: answer });
        assert.equal(/^cancelled: /m.test(said), outcome === 'cancelled', said);
        assert.equal(code === 0, outcome === 'cancelled', said);
        const { id } = requests.find(({ method }) => method === 'DELETE') ?? {};
        const advice = `repeat DELETE ${url}${path}/p1 with X-Request-ID ${id}`;
        assert.equal(said.includes(advice), outcome === 'not known', said);
        assert.equal(said.includes('the cancellation was refused'), outcome === 'refused', said);
      });

    test('cancels although the answer to the status read is cut off, and says so', async (t) => {
      const { said, code } = await run(t, { read: cut });
      assert.match(said, /status(?: is|:) not known[\s\S]*cancelled: 204\n$/);
      assert.equal(code, 0, said);
    });

    test('prints its X-Request-ID first, and how to repeat the request if the bank asks for a long pause', async (t) => {
      const busy = ofGateway(429, 'QUOTA_EXCEEDED', { 'Retry-After': '5000' });
      const { url, said, requests, code } = await run(t, { initiations: [busy] });
      const [, id] = /^X-Request-ID: (\S+)\nnot known yet: 429.*; repeat after 5000 s\n/.exec(said) ?? [];
      assert.deepEqual(requests, [{ method: 'POST', path, id }]);
      assert.ok(said.includes(`${program} examples/callers/${file} ${url} API_KEY ${id}`), said);
      assert.ok(!said.includes(apiKey), 'it prints the API key');
      assert.equal(code, 1);
    });

    test('repeats the request of an earlier run, which the bank may have received', async (t) => {
      const id = randomUUID();
      const refused = ofGateway(403, 'ENVIRONMENT_FORBIDDEN');
      const { said, requests } = await run(
        t,
        { initiations: [refused, ofBank(201, { paymentId: 'p1' })] },
        id,
      );
      assert.match(said, /^not known yet: 403[\s\S]*^paid: p1$/m);
      const ids = requests.filter(({ method }) => method === 'POST').map((request) => request.id);
      assert.deepEqual(new Set(ids), new Set([id]));
    });
  });
}

describe('the example pay.py', {
  skip: onPath('python3') === undefined && 'python3 is not installed',
}, () => {
  const runCode = (code: string, ...args: readonly string[]) =>
    promisify(execFile)('python3', ['-B', '-c', `import sys, pay\n${code}`, ...args], {
      cwd: join(root, 'examples/callers'),
    });

  test('ends a call whose answer comes in drops', async (t) => {
    const server = createServer((socket) => {
      socket.write('HTTP/1.1 201 Created\r\nX-Drops: ');
      const drops = setInterval(() => socket.write('a'), 20);
      socket.on('error', () => {}).on('close', () => clearInterval(drops));
    });
    const url = `http://127.0.0.1:${await listen(server)}`;
    t.after(() => server.close());
    const code = `
try:
    pay.call(sys.argv[1], "key", "POST", "/", timeout_s=0.3)
except pay.NotKnown as problem:
    print(problem)`;
    const { stdout } = await within(20_000, 'the call ends', runCode(code, url));
    assert.match(stdout, /the answer takes too long/);
  });

  test('does not take a deeply nested answer, or another request, for a refusal', async (t) => {
    const { url } = await startScript(t, {
      initiations: [
        ofBank(201, `{"a":${'['.repeat(100_000)}`, { Location: link }),
        ofGateway(409, 'DUPLICATE_MISMATCH'),
      ],
    });
    const code = `
assert not issubclass(RecursionError, pay.Refused)
print(pay.pay(sys.argv[1], "key", "id", b"{}"))
try:
    pay.pay(sys.argv[1], "key", "id", b"{}")
except pay.Mismatch as problem:
    print(problem)`;
    const { stdout } = await runCode(code, url);
    assert.match(stdout, /^paid: p2\np2\nthis X-Request-ID belongs to another request/);
  });

  test('prints an id that no encoding has', async (t) => {
    const { url } = await startScript(t, { initiations: [ofBank(201, '{"paymentId":"\\ud800"}')] });
    const example = startCommand(t, 'python3', ['examples/callers/pay.py', url, apiKey]);
    assert.equal(await example.exitCode(), 0, example.stderr());
    assert.match(example.stdout(), /^paid: \\ud800$/m);
  });
});
