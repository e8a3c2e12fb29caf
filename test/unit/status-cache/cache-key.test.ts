/** Nobody is given an answer that was made for somebody else, whoever asks in whatever order. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { headerValue } from '../../../src/pis/headers.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { Field } from '../../kit/fields.ts';
import { seeded } from '../../kit/seeded.ts';
import { createCacheInstance, statusRead, statusResponse } from './cache-instance.ts';

/** What tells one asker from another, and two values of each: the answers may differ with every one. */
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
} as const;
const names = Object.keys(differences) as (keyof typeof differences)[];

/** Somebody, and others who differ from him in one point each. */
const askers = fc
  .tuple(
    fc.record(Object.fromEntries(names.map((name) => [name, fc.nat(1)]))),
    fc.subarray(names, { minLength: 1, maxLength: 3 }),
  )
  .map(([base, points]) => [base, ...points.map((name) => ({ ...base, [name]: 1 - (base[name] ?? 0) }))])
  .map((choices) => choices.map(askerOf));

function askerOf(choice: Readonly<Record<string, number>>) {
  const chosen = (name: keyof typeof differences) => differences[name][choice[name] ?? 0] ?? '';
  const [tenant, payment, service] = [chosen('tenant'), chosen('payment'), chosen('service')];
  const headers = names.slice(3).map((name): Field => [name, chosen(name)]);
  return { tenant, payment, service, headers };
}

const reads = fc.array(fc.record({ asker: fc.nat(3), instance: fc.nat(1), together: fc.boolean() }), {
  minLength: 10,
  maxLength: 40,
});

describe('every answer of a status read', () => {
  test('is one that the bank made for this very asker, from the cache or not, on two instances', async (t) => {
    let served = 0;
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), askers, reads, async (scheduler, people, all) => {
        const state = createMemoryState();
        const bank = scheduler.scheduleFunction(async ({ client, operation, headers }) => {
          const made = { tenant: client.tenant, path: operation.path, headers };
          return statusResponse('ACTC', [], { madeFor: made });
        });
        const instances = [0, 1].map(() => createCacheInstance(state, bank));
        const answers = all.map(async ({ asker, instance, together }) => {
          const who = people[asker % people.length] ?? assert.fail();
          if (!together) await scheduler.schedule(Promise.resolve());
          const request = statusRead(who);
          const answer = await instances[instance]?.send(request);
          const { madeFor } = JSON.parse(answer?.body.toString() ?? '{}');
          assert.deepEqual(madeFor, {
            tenant: who.tenant,
            path: request.operation.path,
            headers: who.headers.map((field) => [...field]),
          });
        });
        await scheduler.waitFor(Promise.all(answers));
        for (const { counts } of instances) served += (counts.get('hit') ?? 0) + (counts.get('shared') ?? 0);
      }),
      seeded(t, 150),
    );
    assert.ok(served > 500, 'the cache was hardly of use');
    t.diagnostic(`${served} answers were not the first of their kind`);
  });

  for (const one of [
    'Authorization',
    'Cookie',
    'PSU-ID',
    'Consent-ID',
    'Accept',
    'Accept-Language',
  ] as const) {
    test(`differs for one who sends ${one} and one who sends none, or two`, async () => {
      let asked = 0;
      const bank = async () => statusResponse('ACTC', [], { n: asked++ });
      const { send } = createCacheInstance(createMemoryState(), bank);
      const of = (...values: readonly string[]) =>
        send(statusRead({ headers: values.map((value) => [one, value]) }));
      await of();
      await of('');
      await of('a');
      await of('a', 'b');
      await of('a, b');
      await of('ab');
      assert.ok(asked >= 5);
    });
  }

  test('carries the id of whoever asks: none is kept', async () => {
    const bank = async () => statusResponse('ACTC', [['X-Request-ID', 'of the first']]);
    const { send } = createCacheInstance(createMemoryState(), bank);
    await send(statusRead());
    const { headers, servedFrom } = await send(statusRead());
    assert.equal(servedFrom, 'cache');
    assert.equal(headerValue(headers, 'x-request-id'), undefined);
  });
});
