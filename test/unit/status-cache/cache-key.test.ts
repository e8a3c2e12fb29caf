/** Isolation: no caller gets a response that the bank generated for another one. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { headerValue } from '../../../src/pis/headers.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { Field } from '../../kit/fields.ts';
import { seededRuns } from '../../kit/seeded-runs.ts';
import { bankStatusResponse, createCacheInstance, statusRead } from './cache-instance.ts';

/** Two values of everything that distinguishes callers: the response may depend on each. */
const differences = {
  tenant: ['shop', 'rival'],
  payment: ['p', 'q'],
  service: ['payments', 'bulk-payments'],
  Authorization: ['Bearer one', 'Bearer two'],
  Cookie: ['session=1', 'session=2'],
  'PSU-ID': ['anna', 'berta'],
  'PSU-Corporate-ID': ['acme', 'umbrella'],
  'Consent-ID': ['1', '2'],
  Accept: ['application/json', 'application/xml'],
  'Accept-Encoding': ['gzip', 'identity'],
  'Accept-Language': ['de', 'en'],
  'X-BIC': ['GENODEF1S08', 'GENODEF1S02'], // named by callerHeaders
} as const;
const names = Object.keys(differences) as (keyof typeof differences)[];

/** A caller, and others that differ from it in one value each. */
const callers = fc
  .tuple(
    fc.record(Object.fromEntries(names.map((name) => [name, fc.nat(1)]))),
    fc.subarray(names, { minLength: 1, maxLength: 3 }),
  )
  .map(([base, points]) => [base, ...points.map((name) => ({ ...base, [name]: 1 - (base[name] ?? 0) }))])
  .map((choices) => choices.map(callerOf));

function callerOf(choice: Readonly<Record<string, number>>) {
  const chosen = (name: keyof typeof differences) => differences[name][choice[name] ?? 0] ?? '';
  const [tenant, payment, service] = [chosen('tenant'), chosen('payment'), chosen('service')];
  const headers = names.slice(3).map((name): Field => [name, chosen(name)]);
  return { tenant, payment, service, headers };
}

const reads = fc.array(fc.record({ caller: fc.nat(3), instance: fc.nat(1), together: fc.boolean() }), {
  minLength: 10,
  maxLength: 40,
});

describe('the cache key of a status read', () => {
  test('separates callers in random sequences of reads on two instances', async (t) => {
    let served = 0;
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), callers, reads, async (scheduler, people, all) => {
        const state = createMemoryState();
        const bank = scheduler.scheduleFunction(async ({ client, operation, headers }) => {
          const generated = { tenant: client.tenant, path: operation.path, headers };
          return bankStatusResponse('ACTC', [], { generatedFor: generated });
        });
        const instances = [0, 1].map(() => createCacheInstance(state, bank));
        const answers = all.map(async ({ caller, instance, together }) => {
          const who = people[caller % people.length] ?? assert.fail();
          if (!together) await scheduler.schedule(Promise.resolve());
          const request = statusRead(who);
          const answer = await instances[instance]?.send(request);
          const { generatedFor } = JSON.parse(answer?.body.toString() ?? '{}');
          assert.deepEqual(generatedFor, {
            tenant: who.tenant,
            path: request.operation.path,
            headers: who.headers.map((field) => [...field]),
          });
        });
        await scheduler.waitFor(Promise.all(answers));
        for (const { counts } of instances) served += (counts.get('hit') ?? 0) + (counts.get('shared') ?? 0);
      }),
      seededRuns(t, 150),
    );
    assert.ok(served > 500, `the cache served only ${served} reads`);
  });

  for (const field of [
    'Authorization',
    'Cookie',
    'PSU-ID',
    'Consent-ID',
    'Accept',
    'Accept-Language',
    'X-BIC',
  ] as const) {
    test(`uses different keys for one, two and no ${field} fields`, async () => {
      let fetches = 0;
      const bank = async () => bankStatusResponse('ACTC', [], { n: fetches++ });
      const { send } = createCacheInstance(createMemoryState(), bank);
      const read = (...values: readonly string[]) =>
        send(statusRead({ headers: values.map((value) => [field, value]) }));
      await read();
      await read('');
      await read('a');
      await read('a', 'b');
      await read('a, b');
      await read('ab');
      assert.ok(fetches >= 5);
    });
  }

  test('shares a response that varies with a field of callerHeaders among reads with the same value', async () => {
    let fetches = 0;
    const bank = async () => bankStatusResponse('ACTC', [['Vary', 'X-BIC, X-Portal']], { n: fetches++ });
    const { send } = createCacheInstance(createMemoryState(), bank);
    for (const value of ['GENODEF1S08', 'GENODEF1S02', 'GENODEF1S08'])
      await send(statusRead({ headers: [['x-bic', value]] }));
    assert.equal(fetches, 2);
  });

  test('does not store the X-Request-ID of the first response', async () => {
    const bank = async () => bankStatusResponse('ACTC', [['X-Request-ID', 'of the first response']]);
    const { send } = createCacheInstance(createMemoryState(), bank);
    await send(statusRead());
    const { headers, servedFrom } = await send(statusRead());
    assert.equal(servedFrom, 'cache');
    assert.equal(headerValue(headers, 'x-request-id'), undefined);
  });
});
