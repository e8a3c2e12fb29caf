/** Where something personal or secret may stand: how each is filled with marked values. One row a place. */

import assert from 'node:assert/strict';
import type { Fault } from '../../src/simulated-bank/faults.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { brokenRequests, refusedRequests } from '../kit/broken-requests.ts';
import { anyCanary, apiKeys, moods, oneOfEach, paymentIdWithCanary, revealed } from '../kit/canaries.ts';
import { type CapturedGateway, type CaptureOptions, redisPassword } from '../kit/output-capture.ts';
import { connectRaw, type RawAnswer } from '../kit/raw.ts';
import { until } from '../kit/within.ts';

/** After such an answer nothing is sent for a while. */
const asksForPause = (mood: Fault): boolean =>
  ['too-many-requests', 'rate-limit'].includes(mood.name) || (mood.name === 'status' && mood.status === 429);

/** One request of each operation, all at once. */
export const sendEach = async ({ send }: CapturedGateway): Promise<readonly RawAnswer[]> =>
  Promise.all(oneOfEach().map(send));

/** With a trace of the caller's own, which has room for more. */
const traced = (request: string) =>
  request.replace(/traceparent: .*/, 'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');

/** An initiation, marked wherever it can be. */
export const firstPayment = () => oneOfEach()[0] ?? '';
const asRival = (request: string) => request.replace(apiKeys.shop, apiKeys.rival);

/** Where something is hidden, and how; what the installation needs for it. */
export interface HidingPlace {
  readonly wishes?: CaptureOptions;
  readonly hide: (telling: CapturedGateway) => Promise<unknown>;
  /** What the test itself writes to Redis. */
  readonly ownCommands?: RegExp;
}

/** All of them, by name. @param banks what an installation needs for banks that speak TLS, by name */
export const hidingPlaces = (
  banks: Readonly<Record<string, CaptureOptions>>,
): Readonly<Record<string, HidingPlace>> => ({
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
        telling.bank.clearFaults();
        telling.bank.injectFault(mood);
        answers.push(...(await sendEach(telling)));
        if (!['never-answer', 'drip'].includes(mood.name)) await preflight(telling); // it would wait
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
        async hide(telling: CapturedGateway) {
          telling.bank.injectFault(mood);
          await sendEach(telling);
          const answers = await sendEach(telling);
          assert.equal(answers.at(-1)?.headers.get('penstock-error'), 'QUEUE_TIMEOUT');
        },
      },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(banks).map(([name, wishes]) => [
      `a certificate of the bank's ${name}`,
      {
        wishes,
        async hide(telling: CapturedGateway) {
          await sendEach(telling);
          await preflight(telling);
        },
      },
    ]),
  ),
  'whatever the door refuses': {
    async hide({ send }) {
      const unknown = oneOfEach().map((request) => request.replace(apiKeys.shop, 'canary-unknown'));
      for (const request of [...refusedRequests, ...unknown]) {
        const { status } = await send(request);
        assert.ok(status >= 400 || /^Upgrade: /m.test(request), request.slice(0, 80));
      }
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
  'a password that Redis does not take any more': {
    async hide({ redis, lines }) {
      const says = (text: string) => until(5_000, text, () => lines.some((line) => line.includes(text)));
      if (!redis) return;
      await redis.config('SET', 'requirepass', 'canary-another');
      await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await says('"why":"Redis');
      await redis.config('SET', 'requirepass', redisPassword);
      await says('is well');
    },
  },
  'what is garbage in Redis': {
    async hide(telling) {
      const { redis } = telling;
      const holdIt = { hold: 'open', reason: 'a test', for: '1min' };
      await callAdminApi(telling, 'PUT', '/api/circuits/sandbox/read', holdIt);
      for (const key of (await redis?.keys('*')) ?? []) await redis?.set(key, '{"canary":canary');
      await sendEach(telling);
      for (const page of ['audit', 'audit/verify', 'in-doubt', 'environments']) {
        const { text } = await callAdminApi(telling, 'GET', `/api/${page}`);
        assert.doesNotMatch(revealed(text), anyCanary);
      }
    },
    ownCommands: /"canary":canary/g,
  },
  'what operators ask, and get wrong': {
    async hide(telling) {
      const { adminUrl } = telling;
      for (const [method, path, body] of wrongOrders) {
        await callAdminApi(telling, method, path, body);
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
});

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
async function preflight(telling: CapturedGateway): Promise<void> {
  const { text } = await callAdminApi(telling, 'POST', '/api/environments/sandbox/preflight');
  assert.doesNotMatch(revealed(text), anyCanary);
}
