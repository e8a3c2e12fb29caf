/** The bank is down: statuses that are known are served, marked as stale, and others are the error that it is. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call, jsonOf } from '../kit/call.ts';
import type { Field } from '../kit/fields.ts';
import { type Sections, startGateway } from '../kit/gateway.ts';
import { transfers } from '../kit/request.ts';
import { type StubResponse, startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { shortDeadlines } from './fault-contract.ts';

type Failure = 'refuses connections' | 'answers 500' | 'answers 503' | 'says nothing';

const failures: Readonly<Record<Failure, readonly [status: number, code: string | undefined]>> = {
  'refuses connections': [502, 'UPSTREAM_UNREACHED'],
  'answers 500': [500, undefined],
  'answers 503': [503, undefined],
  'says nothing': [504, 'OUTCOME_UNKNOWN'],
};

/** A gateway that knows one payment, and a bank that fails from now on. */
async function startKnowing(t: TestContext, failure: Failure, sections: Sections = {}) {
  let says: () => StubResponse | Promise<StubResponse> = () =>
    statusResponse('ACTC', {}, [['Cache-Control', 'max-age=0']]);
  const bank = await startStubBank(t, () => says());
  const sandbox = { baseUrl: bank.baseUrl, standardVersion: '1.3.11' };
  const gateway = await startGateway(t, { environments: { sandbox }, ...shortDeadlines, ...sections });
  const read = (payment: string, ...headers: readonly Field[]) =>
    call(gateway.url, { method: 'GET', path: `${transfers}/${payment}/status`, headers });
  assert.equal((await read('known')).status, 200);

  if (failure === 'refuses connections') await bank.close();
  if (failure === 'says nothing') says = () => new Promise(() => {});
  if (failure.startsWith('answers')) says = () => ({ status: Number(failure.slice(-3)) });
  return { read, gateway };
}

for (const failure of Object.keys(failures) as Failure[]) {
  const [status, code] = failures[failure];

  describe(`a bank that ${failure}`, { concurrency: true }, () => {
    test('is covered up by the last status known, which is marked as stale', async (t) => {
      const { read, gateway } = await startKnowing(t, failure);
      const reply = await read('known');
      assert.deepEqual([reply.status, jsonOf(reply).transactionStatus], [200, 'ACTC']);
      assert.match(reply.header('Cache-Status') ?? '', /^penstock; hit; fwd=stale; ttl=-?\d+$/);
      assert.match(reply.header('Age') ?? '', /^\d+$/);
      assert.equal(reply.header('Penstock-Error'), undefined);
      assert.ok(gateway.logLines.at(-1)?.includes('"servedFrom":"stale-cache"'));
    });

    test('is told of where nothing is known, where nothing kept is wanted, and where it is too old', async (t) => {
      const { read } = await startKnowing(t, failure);
      const tooOld = await startKnowing(t, failure, { statusCache: { staleTtl: '0s' } });
      for (const reply of [
        await read('unknown'),
        await read('known', ['Cache-Control', 'no-cache']),
        await read('known', ['Signature', 'a']),
        await tooOld.read('known'),
      ]) {
        assert.deepEqual([reply.status, reply.header('Penstock-Error')], [status, code]);
      }
    });
  });
}
