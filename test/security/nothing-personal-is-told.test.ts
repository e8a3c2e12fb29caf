/**
 * The story: half the company may read the logs, the metrics and the console, and who reads them finds a payer's IBAN, or
 * a token that still works. So marked values are put wherever a TPP, a bank, an operator or a configuration can put one,
 * one hiding place a row; and after each, everything that was told by any way is searched.
 */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { Fault } from '../../src/simulated-bank/faults.ts';
import { brokenRequests, refusedRequests } from '../kit/broken-requests.ts';
import {
  anyCanary,
  anyOf,
  apiKeys,
  moods,
  oneOfEach,
  paymentIdWithCanary,
  revealed,
} from '../kit/canaries.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { lifeOfAllTests } from '../kit/life.ts';
import { createAuthority } from '../kit/openssl.ts';
import { operate } from '../kit/operator.ts';
import { connectRaw, type RawAnswer } from '../kit/raw.ts';
import { withoutRedisServer } from '../kit/redis.ts';
import { startTelling, type Telling, type Way, ways } from '../kit/telling.ts';

const life = lifeOfAllTests();
const authority = createAuthority(life);
const qwac = authority.issue('qwac');
const seal = authority.issue('seal', { key: 'rsa' });
const encryptionKey = Buffer.from('canary-encryption-key-of-32-byte');

/** Everything that stands in a PEM file, line by line. */
const linesOf = (pem: string) => pem.split('\n').filter((line) => /^[A-Za-z0-9+/]{20,}={0,2}$/.test(line));
const keyLines = [qwac, seal].flatMap(({ cert, key }) => [...linesOf(cert), ...linesOf(key)]);

function keyFile(t: TestContext, content = encryptionKey.toString('base64')): string {
  const file = join(temporaryFolder(t), 'state.key');
  writeFileSync(file, `${content}\n`);
  return file;
}

/** After such an answer nothing is sent for a while. */
const asksForPause = (mood: Fault): boolean =>
  ['too-many-requests', 'rate-limit'].includes(mood.name) || (mood.name === 'status' && mood.status === 429);

const sendEach = async ({ send }: Telling): Promise<readonly RawAnswer[]> =>
  Promise.all(oneOfEach().map(send));

/** With a trace of the caller's own, which has room for more. */
const traced = (request: string) =>
  request.replace(/traceparent: .*/, 'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');

const firstPayment = () => oneOfEach()[0] ?? '';
const asRival = (request: string) => request.replace(apiKeys.shop, apiKeys.rival);

/** Where something is hidden, and how; what the installation needs for it. */
interface HidingPlace {
  readonly wishes?: Parameters<typeof startTelling>[1];
  readonly hide: (telling: Telling) => Promise<unknown>;
}

const bankWith = (name: string, more: object = {}) => {
  const { cert, key } = authority.issue(name, { subject: `/CN=canary-${name}`, ...more });
  const tls = { caFile: authority.certFile, certFile: qwac.certFile, keyFile: qwac.keyFile };
  const signing = { certFile: seal.certFile, keyFile: seal.keyFile };
  return { bank: { tls: { cert, key } }, environment: { tls, signing }, secrets: keyLines };
};

const banksWithTls = {
  'of another name': bankWith('stranger', { extensions: 'subjectAltName = DNS:canary-name.example' }),
  'that has expired': bankWith('expired', { from: '20250101000000Z', until: '20260101000000Z' }),
  'that is believed, and in signatures': bankWith('good'),
};

const hidingPlaces: Readonly<Record<string, HidingPlace>> = {
  'headers, bodies and path segments of a payment': {
    async hide(telling) {
      const answers = [
        ...(await sendEach(telling)),
        ...(await Promise.all(oneOfEach().map(traced).map(telling.send))),
      ];
      assert.ok(answers.some(({ headers }) => headers.get('penstock-error') === undefined));
      assert.ok(telling.bank.requests.every(({ rawHeaders }) => anyCanary.test(rawHeaders.join())));
    },
  },
  'a payment of another tenant': {
    async hide(telling) {
      await sendEach(telling);
      for (const request of oneOfEach().slice(1).map(asRival)) {
        const { headers, body } = await telling.send(request);
        assert.equal(headers.get('penstock-error'), 'PAYMENT_UNKNOWN');
        assert.doesNotMatch(revealed(JSON.stringify([...headers]) + body), anyCanary);
      }
    },
  },
  'whatever the bank answers': {
    async hide(telling) {
      const answers: RawAnswer[] = [];
      for (const mood of moods.filter((one) => !asksForPause(one))) {
        telling.bank.heal();
        telling.bank.fail(mood);
        answers.push(...(await sendEach(telling)));
        if (!['never-answer', 'drip', 'switching-protocols'].includes(mood.name)) await preflight(telling); // it would wait
      }
      await telling.bank.stop();
      answers.push(...(await sendEach(telling)));
      const codes = new Set(answers.map(({ headers }) => headers.get('penstock-error')));
      for (const code of ['OUTCOME_UNKNOWN', 'UPSTREAM_MALFORMED', 'UPSTREAM_UNREACHED', undefined])
        assert.ok(codes.has(code), code);
      assert.ok(
        answers.some(({ body }) => anyCanary.test(body)),
        'the bank said something',
      );
    },
  },
  ...Object.fromEntries(
    moods.filter(asksForPause).map((mood, index) => [
      `a bank that asks for a pause: ${mood.name} ${index}`,
      {
        async hide(telling: Telling) {
          telling.bank.fail(mood);
          await sendEach(telling);
          const answers = await sendEach(telling);
          assert.equal(answers.at(-1)?.headers.get('penstock-error'), 'QUEUE_TIMEOUT');
        },
      },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(banksWithTls).map(([name, wishes]) => [
      `a certificate of the bank's ${name}`,
      {
        wishes,
        async hide(telling: Telling) {
          await sendEach(telling);
          await preflight(telling);
        },
      },
    ]),
  ),
  'whatever the door refuses': {
    async hide({ send }) {
      for (const request of [
        ...refusedRequests,
        ...oneOfEach().map((one) => one.replace(apiKeys.shop, 'canary-unknown')),
      ])
        assert.ok((await send(request)).status >= 400, request.slice(0, 80));
    },
  },
  'whatever else is sent that is no HTTP, or no longer': {
    async hide({ port, lines }) {
      await Promise.all(
        brokenRequests.map(async (bytes) => {
          const connection = await connectRaw(port);
          connection.send(bytes);
          connection.end();
          const answer = await connection.answer().catch(() => undefined); // closed without a word
          if (answer?.headers.has('penstock-error')) assert.doesNotMatch(revealed(answer.body), anyCanary);
          connection.destroy();
        }),
      );
      assert.ok(lines.length > 0);
    },
  },
  'what operators ask, and get wrong': {
    async hide(telling) {
      const { adminUrl } = telling;
      for (const [method, path, body] of wrongOrders) {
        await operate(telling, method, path, body);
        const headers = { Authorization: 'Bearer canary-operators-token', Cookie: 'canary=1' };
        assert.ok((await fetch(adminUrl + path, { method, headers })).status >= 400);
      }
      const broken = {
        method: 'PUT',
        body: '{"reason":"canary',
        headers: { 'Content-Type': 'application/json' },
      };
      await fetch(`${adminUrl}/api/environments/active`, broken);
    },
  },
};

const wrongOrders = [
  ['GET', '/api/canary-page?canary=1'],
  ['GET', '/api/decisions/canary-request'],
  ['PUT', '/api/environments/active', { environment: 'production', reason: 'x', confirm: 'canary' }],
  ['PUT', '/api/circuits/canary/canary', { hold: 'open', reason: 'x' }],
  ['PUT', '/api/circuits/sandbox/write', { hold: 'canary', reason: 'x', canary: 'canary' }],
  ['POST', '/api/environments/canary/preflight'],
  [
    'POST',
    '/api/in-doubt/canary-doubt',
    { outcome: 'happened', paymentId: paymentIdWithCanary, reason: 'x' },
  ],
  ['DELETE', `/api/status-cache?payment=${paymentIdWithCanary}&environment=canary`],
  ['DELETE', '/api/status-cache?payment=&canary=canary'],
] as const;

/** What it tells an operator is searched, too. */
async function preflight(telling: Telling): Promise<void> {
  const { text } = await operate(telling, 'POST', '/api/environments/sandbox/preflight');
  assert.doesNotMatch(revealed(text), anyCanary);
}

/** Nothing is found anywhere; and everywhere there was something to search. */
async function assertTold(telling: Telling, allowed: Partial<Record<Way, RegExp>> = {}): Promise<void> {
  const told = Object.entries(await telling.told());
  const secret = anyOf(telling.secrets);
  for (const [way, text] of told) {
    const sign = ways[way as Way]; // the names of the very same table
    assert.match(text, sign, `${way}: nothing to search`);
    const searched = revealed(text).replaceAll(allowed[way as Way] ?? /(?!)/g, '');
    const [found] = searched.match(new RegExp(`.{0,120}(?:${secret.source}).{0,60}`, 'i')) ?? [];
    assert.equal(found, undefined, way);
  }
}

describe('H9: nothing personal and no secret is told', () => {
  for (const [place, { wishes, hide }] of Object.entries(hidingPlaces)) {
    test(`that was hidden in ${place}`, async (t) => {
      const { sections = {}, secrets = [], ...rest } = wishes ?? {};
      const state = { encryptionKeyFile: keyFile(t) };
      const secretsToo = [...secrets, encryptionKey.toString('base64'), encryptionKey.toString('hex')];
      const telling = await startTelling(t, {
        ...rest,
        sections: { ...sections, state },
        secrets: secretsToo,
      });
      const { status } = await telling.send(firstPayment());
      if (wishes === undefined) assert.equal(status, 201);
      await hide(telling);
      await assertTold(telling);
    });
  }
});

describe('H9: without encryption, Redis holds what the bank says', { skip: withoutRedisServer }, () => {
  test('and no token, no API key, no PSU, nothing of a payment order; and no key names a payment', async (t) => {
    const telling = await startTelling(t);
    await telling.send(firstPayment());
    await sendEach(telling);
    // What stands in an answer of the bank: the payment's id, in its links.
    await assertTold(telling, { 'commands to Redis': new RegExp(paymentIdWithCanary, 'g') });
  });
});
