/** The bank fails: cached statuses are served, marked as stale; all other reads return the error. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call, jsonOf } from '../kit/call.ts';
import type { Field } from '../kit/fields.ts';
import { type Sections, shortDeadlines, startGateway } from '../kit/gateway.ts';
import { transfersPath } from '../kit/request.ts';
import { type StubResponse, startStubBank, statusResponse } from '../kit/stub-bank.ts';

type Failure = 'refuses connections' | 'answers 500' | 'answers 503' | 'does not respond';

const failures: Readonly<Record<Failure, readonly [status: number, code: string | undefined]>> = {
  'refuses connections': [502, 'UPSTREAM_UNREACHED'],
  'answers 500': [500, undefined],
  'answers 503': [503, undefined],
  'does not respond': [504, 'OUTCOME_UNKNOWN'],
};

/** A gateway that has cached one payment, and a bank that then fails. */
async function startWithCachedPayment(t: TestContext, failure: Failure, sections: Sections = {}) {
  let respond: () => StubResponse | Promise<StubResponse> = () =>
    statusResponse('ACTC', {}, [['Cache-Control', 'max-age=0']]);
  const bank = await startStubBank(t, () => respond());
  const sandbox = { baseUrl: bank.baseUrl, standardVersion: '1.3.11' };
  const gateway = await startGateway(t, { environments: { sandbox }, ...shortDeadlines, ...sections });
  const read = (payment: string, ...headers: readonly Field[]) =>
    call(gateway.url, { method: 'GET', path: `${transfersPath}/${payment}/status`, headers });
  assert.equal((await read('cached')).status, 200);

  if (failure === 'refuses connections') await bank.close();
  if (failure === 'does not respond') respond = () => new Promise(() => {});
  if (failure.startsWith('answers')) respond = () => ({ status: Number(failure.slice(-3)) });
  return { read, gateway };
}

for (const failure of Object.keys(failures) as Failure[]) {
  const [status, code] = failures[failure];

  describe(`a bank that ${failure}`, { concurrency: 8 }, () => {
    test(`serves the last known status, marked as stale, if the bank ${failure}`, async (t) => {
      const { read, gateway } = await startWithCachedPayment(t, failure);
      const reply = await read('cached');
      assert.deepEqual([reply.status, jsonOf(reply).transactionStatus], [200, 'ACTC']);
      assert.match(reply.header('Cache-Status') ?? '', /^penstock; hit; fwd=stale; ttl=-?\d+$/);
      assert.match(reply.header('Age') ?? '', /^\d+$/);
      assert.equal(reply.header('Penstock-Error'), undefined);
      assert.ok(gateway.logLines.at(-1)?.includes('"servedFrom":"stale-cache"'));
    });

    test(`returns the error if the bank ${failure} and no status may be served stale`, async (t) => {
      const { read } = await startWithCachedPayment(t, failure);
      const tooOld = await startWithCachedPayment(t, failure, { statusCache: { staleTtl: '0s' } });
      for (const reply of [
        await read('uncached'),
        await read('cached', ['Cache-Control', 'no-cache']),
        await read('cached', ['Signature', 'a']),
        await tooOld.read('cached'),
      ]) {
        assert.deepEqual([reply.status, reply.header('Penstock-Error')], [status, code]);
      }
    });
  });
}
