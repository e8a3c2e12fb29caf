/** The sources of personal and secret data, one row each, and how to insert marked values there. */

import assert from 'node:assert/strict';
import type { Fault } from '../../src/simulated-bank/faults.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { brokenRequests, refusedRequests } from '../kit/broken-requests.ts';
import {
  anyCanary,
  apiKeys,
  bankFaults,
  decodeBase64Parts,
  paymentIdWithCanary,
  requestOfEachOperation,
} from '../kit/canaries.ts';
import { type CapturedGateway, type CaptureOptions, redisPassword } from '../kit/output-capture.ts';
import { connectRaw, type RawAnswer } from '../kit/raw-connection.ts';
import { until } from '../kit/within.ts';

/** After such a response, the gateway sends some calls only after a while. */
const requestsPause = (mood: Fault): boolean =>
  ['too-many-requests', 'rate-limit'].includes(mood.name) || (mood.name === 'status' && mood.status === 429);

/** Sends one request of each operation, concurrently. */
export const sendEach = async ({ send }: CapturedGateway): Promise<readonly RawAnswer[]> =>
  Promise.all(requestOfEachOperation().map(send));

/** Adds a trace of the client, which the gateway continues. */
const traced = (request: string) =>
  request.replace(/traceparent: .*/, 'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');

/** An initiation with marked values at every position. */
export const firstPayment = () => requestOfEachOperation()[0] ?? '';
const asRival = (request: string) => request.replace(apiKeys.shop, apiKeys.rival);

export interface SensitiveDataSource {
  readonly options?: CaptureOptions;
  readonly insert: (gateway: CapturedGateway) => Promise<unknown>;
  /** Matches the values that the test itself writes to Redis. */
  readonly ownCommands?: RegExp;
}

/** @param banks options for banks with TLS, by name */
export const sensitiveDataSources = (
  banks: Readonly<Record<string, CaptureOptions>>,
): Readonly<Record<string, SensitiveDataSource>> => ({
  'headers, bodies and path segments of a payment': {
    async insert(gateway) {
      const responses = [
        ...(await sendEach(gateway)),
        ...(await Promise.all(requestOfEachOperation().map(traced).map(gateway.send))),
      ];
      assert.ok(responses.some(({ headers }) => headers.get('penstock-error') === undefined));
      assert.ok(gateway.bank.requests.every(({ rawHeaders }) => anyCanary.test(rawHeaders.join())));
    },
  },
  'a payment of another tenant': {
    async insert(gateway) {
      await sendEach(gateway);
      for (const request of requestOfEachOperation().slice(1).map(asRival)) {
        const { headers, body } = await gateway.send(request);
        assert.equal(headers.get('penstock-error'), 'PAYMENT_UNKNOWN');
        assert.doesNotMatch(decodeBase64Parts(JSON.stringify([...headers]) + body), anyCanary);
      }
    },
  },
  'responses of the bank': {
    async insert(gateway) {
      const responses: RawAnswer[] = [];
      for (const mood of bankFaults.filter((one) => !requestsPause(one))) {
        gateway.bank.clearFaults();
        gateway.bank.injectFault(mood);
        responses.push(...(await sendEach(gateway)));
        if (!['never-answer', 'drip'].includes(mood.name)) await preflight(gateway); // it would wait for the response
      }
      await gateway.bank.stop();
      responses.push(...(await sendEach(gateway)));
      const codes = new Set(responses.map(({ headers }) => headers.get('penstock-error')));
      for (const code of ['OUTCOME_UNKNOWN', 'UPSTREAM_MALFORMED', 'UPSTREAM_UNREACHED', undefined])
        assert.ok(codes.has(code), code);
      assert.ok(
        responses.some(({ body }) => anyCanary.test(body)),
        'no response of the bank contains marked values',
      );
    },
  },
  ...Object.fromEntries(
    bankFaults.filter(requestsPause).map((mood, index) => [
      `responses of a bank that requests a pause: ${mood.name} ${index}`,
      {
        async insert(gateway: CapturedGateway) {
          gateway.bank.injectFault(mood);
          await sendEach(gateway);
          const responses = await sendEach(gateway);
          assert.ok(responses.some(({ headers }) => headers.get('penstock-error') === 'QUEUE_TIMEOUT'));
        },
      },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(banks).map(([name, options]) => [
      `a certificate of a bank ${name}`,
      {
        options,
        async insert(gateway: CapturedGateway) {
          await sendEach(gateway);
          await preflight(gateway);
        },
      },
    ]),
  ),
  'refused requests': {
    async insert({ send }) {
      const unknown = requestOfEachOperation().map((request) =>
        request.replace(apiKeys.shop, 'canary-unknown'),
      );
      for (const request of [...refusedRequests, ...unknown]) {
        const { status } = await send(request);
        assert.ok(status >= 400 || /^Upgrade: /m.test(request), request.slice(0, 80));
      }
    },
  },
  'bytes that are not valid HTTP': {
    async insert({ port, lines }) {
      await Promise.all(
        brokenRequests.map(async (bytes) => {
          const connection = await connectRaw(port);
          connection.send(bytes);
          connection.end();
          const response = await connection.answer().catch(() => undefined); // closed without a response
          if (response?.headers.has('penstock-error'))
            assert.doesNotMatch(decodeBase64Parts(response.body), anyCanary);
          connection.destroy();
        }),
      );
      assert.ok(lines.length > 0);
    },
  },
  'a password that Redis rejects': {
    async insert({ redis, lines }) {
      const waitForLog = (text: string) =>
        until(5_000, text, () => lines.some((line) => line.includes(text)));
      if (!redis) return;
      await redis.config('SET', 'requirepass', 'canary-another');
      await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await waitForLog('"why":"Redis');
      await redis.config('SET', 'requirepass', redisPassword);
      await waitForLog('has no problem');
    },
  },
  'corrupt values in Redis': {
    async insert(gateway) {
      const { redis } = gateway;
      const hold = { hold: 'open', reason: 'a test', for: '1min' };
      await callAdminApi(gateway, 'PUT', '/api/circuits/sandbox/read', hold);
      for (const key of (await redis?.keys('*')) ?? []) await redis?.set(key, '{"canary":canary');
      await sendEach(gateway);
      for (const page of ['audit', 'audit/verify', 'in-doubt', 'environments']) {
        const { text } = await callAdminApi(gateway, 'GET', `/api/${page}`);
        assert.doesNotMatch(decodeBase64Parts(text), anyCanary);
      }
    },
    ownCommands: /"canary":canary/g,
  },
  'invalid requests of operators': {
    async insert(gateway) {
      const { adminUrl } = gateway;
      for (const [method, path, body] of invalidAdminRequests) {
        await callAdminApi(gateway, method, path, body);
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

const invalidAdminRequests = [
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

/** Searches the report for the operator as well. */
async function preflight(gateway: CapturedGateway): Promise<void> {
  const { text } = await callAdminApi(gateway, 'POST', '/api/environments/sandbox/preflight');
  assert.doesNotMatch(decodeBase64Parts(text), anyCanary);
}
