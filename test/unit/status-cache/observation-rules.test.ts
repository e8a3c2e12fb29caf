/** The rules of observations, each on its own. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type CachedPayment, parseCachedPayment } from '../../../src/status-cache/cached-payment.ts';
import {
  recordObservation,
  recordRead,
  type StatusRead,
} from '../../../src/status-cache/observation-rules.ts';

const response = { headers: [], body: Buffer.alloc(0), fetchedAtMs: 1, ttlMs: 1_000, credential: 'c' };
const cached: CachedPayment = {
  generation: 'g',
  statusHash: 'RCVD',
  statusSinceMs: 1,
  responses: { variant: response },
  endedAuthorisations: ['a'],
};
const unknown = { ...cached, statusHash: undefined, responses: {} };

const read = (statusHash: string, variant = 'another'): StatusRead => {
  return { statusHash, isFinal: false, observedAtMs: 2, responses: { [variant]: response } };
};
const shown = (statusHash: string) => ({ what: 'status', statusHash, observedAtMs: 2 }) as const;
const ended = (authorisation: string) => ({ what: 'authorisation-ended', authorisation }) as const;

describe('a status read', () => {
  test('is stored and shared if no status is known', () => {
    const [outcome, changed] = recordRead(unknown, 'g', read('RCVD'));
    assert.equal(outcome, 'newest');
    assert.deepEqual([changed?.statusHash, changed?.statusSinceMs], ['RCVD', 2]);
    assert.deepEqual(changed?.responses, { another: response });
    assert.notEqual(changed?.generation, 'g');
  });

  test('is stored and shared beside the other responses if it confirms the status', () => {
    const [outcome, changed] = recordRead(cached, 'g', read('RCVD'));
    assert.deepEqual([outcome, changed?.generation], ['newest', 'g']);
    assert.deepEqual(changed?.responses, { variant: response, another: response });
  });

  test('drops the stored responses, and is neither stored nor shared, if it changes the status', () => {
    const [outcome, changed] = recordRead(cached, 'g', read('ACSC'));
    assert.deepEqual([outcome, changed?.statusHash, changed?.responses], ['changed', undefined, {}]);
    assert.notEqual(changed?.generation, 'g');
  });

  test('of an earlier generation changes nothing, and is not shared even if its status is the known one', () => {
    assert.deepEqual(recordRead(cached, 'earlier', read('RCVD')), ['unordered']);
    assert.deepEqual(recordRead(cached, 'earlier', read('ACSC')), ['outdated']);
  });

  test('that must not be stored changes nothing if it confirms the status', () => {
    assert.deepEqual(recordRead(cached, 'g', { ...read('RCVD'), responses: {} }), ['newest']);
  });
});

describe('a status that another operation has shown', () => {
  test('changes nothing if it is the known one', () => {
    assert.equal(recordObservation(cached, shown('RCVD')), undefined);
  });

  test('drops the stored responses, and starts a generation, if it is another one or none was known', () => {
    for (const payment of [{ ...cached, statusHash: 'ACTC' }, unknown, parseCachedPayment(undefined)]) {
      const changed = recordObservation(payment, shown('RCVD'));
      assert.deepEqual([changed?.statusHash, changed?.responses], ['RCVD', {}]);
      assert.notEqual(changed?.generation, payment.generation);
    }
  });
});

describe('the end of an authorisation', () => {
  test('changes nothing if it is known', () => {
    assert.equal(recordObservation(cached, ended('a')), undefined);
  });

  test('drops the stored responses and the status, and starts a generation, if it is not known', () => {
    const changed = recordObservation(cached, ended('b'));
    assert.deepEqual([changed?.statusHash, changed?.responses], [undefined, {}]);
    assert.notEqual(changed?.generation, 'g');
  });

  test('stays known when the status changes, and for the newest 16 authorisations', () => {
    const names = Array.from({ length: 20 }, (_, index) => `authorisation ${index}`);
    let payment: CachedPayment = cached;
    for (const name of names) payment = recordObservation(payment, ended(name)) ?? payment;
    payment = recordObservation(payment, shown('ACTC')) ?? payment;
    [, payment = payment] = recordRead(payment, payment.generation, read('ACSC'));
    assert.deepEqual(payment.endedAuthorisations, names.toReversed().slice(0, 16));
  });
});
