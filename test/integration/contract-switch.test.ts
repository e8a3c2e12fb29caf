/** A switch asks about requests that work in the one environment and fail in the other, not about those that fail in both. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { z } from 'zod';
import { callAdminApi } from '../kit/admin-api.ts';
import { type Call, call } from '../kit/call.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { initiation } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const comparisonShape = z.object({
  requests: z.number(),
  differences: z.array(
    z.object({
      path: z.string(),
      rule: z.string(),
      count: z.number(),
      inBoth: z.boolean(),
      mustAcknowledge: z.boolean(),
    }),
  ),
});

const body: Readonly<Record<string, unknown>> = JSON.parse(initiation.body);
const payment = (changes: object): Call => ({
  ...initiation,
  requestId: randomUUID(),
  body: JSON.stringify({ ...body, ...changes }),
});
/** Both versions refuse it. */
const withoutAmount = () => payment({ instructedAmount: undefined });
/** 1.3.6 refuses it: it allows 70 characters. */
const withLongAgent = () => payment({ creditorAgentName: 'x'.repeat(100) });
/** Both versions refuse it for the same reason: they allow 70 and 140 characters. */
const withTooLongAgent = () => payment({ creditorAgentName: 'x'.repeat(200) });

/** @param ofProduction more settings of the contract of production */
async function start(t: TestContext, requests: 'report' | 'enforce', ofProduction: object = {}) {
  const [sandbox, production] = [await startBank(t), await startBank(t)];
  const contract = { requests, responses: 'off' };
  const gateway = await startGateway(t, {
    environments: {
      active: 'sandbox',
      sandbox: { baseUrl: sandbox.baseUrl, standardVersion: '1.3.11', contract },
      production: {
        baseUrl: production.baseUrl,
        standardVersion: '1.3.6',
        contract: { ...contract, ...ofProduction },
      },
    },
  });
  let sent = 0;
  return {
    async send(...calls: readonly Call[]) {
      for (const one of calls) await call(gateway.url, one);
      sent += calls.length;
    },
    /** When all requests were checked. */
    async compare() {
      const path = '/api/contract/compare?from=sandbox&to=production';
      let text = '';
      await until(
        5_000,
        () => text,
        async () => {
          text = (await callAdminApi(gateway, 'GET', path)).text;
          return comparisonShape.parse(JSON.parse(text)).requests === sent;
        },
      );
      return comparisonShape.parse(JSON.parse(text)).differences;
    },
    switchTo: (environment: string, more: object = {}) =>
      callAdminApi(gateway, 'PUT', '/api/environments/active', {
        environment,
        reason: 'a test',
        confirm: environment,
        ...more,
      }),
  };
}

const agent = { path: 'body/creditorAgentName', rule: 'max-length' };

describe('a switch', () => {
  for (const requests of ['report', 'enforce'] as const) {
    test(`does not ask about requests that both environments refuse, in mode ${requests}, and shows them`, async (t) => {
      const { send, compare, switchTo } = await start(t, requests);
      await send(withoutAmount(), withTooLongAgent());
      const both = { count: 1, inBoth: true, mustAcknowledge: false };
      assert.deepEqual(
        (await compare()).toSorted((one, other) => one.path.localeCompare(other.path)),
        [
          { ...agent, ...both },
          { path: 'body/instructedAmount', rule: 'required', ...both },
        ],
      );
      const switched = await switchTo('production');
      assert.equal(switched.status, 200, switched.text);
    });

    test(`asks about requests that only the other environment refuses, in mode ${requests}, also if others are refused by both for the same reason`, async (t) => {
      const { send, compare, switchTo } = await start(t, requests);
      await send(withLongAgent(), withTooLongAgent(), withTooLongAgent());
      assert.deepEqual(await compare(), [
        { ...agent, count: 1, inBoth: false, mustAcknowledge: true },
        { ...agent, count: 2, inBoth: true, mustAcknowledge: false },
      ]);
      assert.equal((await switchTo('production')).status, 409);
      assert.equal((await switchTo('production', { acknowledgeDifferences: true })).status, 200);
      assert.equal((await switchTo('sandbox')).status, 200); // back, within an hour
    });
  }

  test('asks about requests without a header that only the other bank requires', async (t) => {
    const requireHeaders = { initiatePayment: ['TPP-Redirect-URI', 'X-Bank-Key'] };
    const { send, compare, switchTo } = await start(t, 'report', { requireHeaders });
    await send(payment({}));
    assert.deepEqual(await compare(), [
      { path: 'headers/X-Bank-Key', rule: 'required', count: 1, inBoth: false, mustAcknowledge: true },
    ]);
    assert.equal((await switchTo('production')).status, 409);
  });
});
