/** Reads of the gateway itself, which need a permit before they ask the bank. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../../../src/request/errors.ts';
import type { PisResponse } from '../../../src/request/messages.ts';
import { createMemoryState } from '../../../src/state/memory.ts';
import type { Field } from '../../kit/fields.ts';
import { bankStatusResponse, createCacheInstance, statusIn, statusRead } from './cache-instance.ts';

/** Two instances in front of a bank, and the permits that their reads ask for. */
function start(status = 'ACTC') {
  const bank = { status, reads: 0 };
  const handle = async (): Promise<PisResponse> => {
    bank.reads += 1;
    return bankStatusResponse(bank.status);
  };
  const state = createMemoryState();
  const [one, other] = [createCacheInstance(state, handle), createCacheInstance(state, handle)];
  const permits: { readonly grant: () => void; readonly refuse: () => void }[] = [];
  const beforeCall = () => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    permits.push({ grant: resolve, refuse: () => reject(new GatewayError('QUEUE_TIMEOUT', 'no permit')) });
    return promise;
  };
  const laterRead = (headers: readonly Field[] = []) => ({ ...statusRead({ headers }), beforeCall });
  const settle = async () => {
    for (let turns = 0; turns < 5; turns++) await setImmediate();
  };
  return { bank, one, other, permits, laterRead, settle };
}

const tokenOf = (name: string): readonly Field[] => [['Authorization', name]];

describe('a read of the gateway itself', () => {
  test('needs one permit for all equal reads on all instances, and one for each of the credentials', async () => {
    const { bank, one, other, permits, laterRead, settle } = start();
    const equal = [one, one, one, other, other].map(({ send }) => send(laterRead(tokenOf('a'))));
    const different = one.send(laterRead(tokenOf('b')));
    await settle();
    assert.deepEqual([permits.length, bank.reads], [2, 0]);
    for (const { grant } of permits) grant();
    for (const read of [...equal, different]) assert.equal(statusIn(await read), 'ACTC');
    assert.deepEqual([permits.length, bank.reads], [2, 2]);
  });

  test('needs none for a cached status', async () => {
    const { bank, one, permits, laterRead } = start();
    await one.send(statusRead());
    assert.equal((await one.send(laterRead())).servedFrom, 'cache');
    assert.deepEqual([permits.length, bank.reads], [0, 1]);
  });

  test('does not delay an equal read of a TPP, and uses its response', async () => {
    const { bank, one, permits, laterRead, settle } = start();
    const later = one.send(laterRead());
    await settle();
    assert.equal((await one.send(statusRead())).servedFrom, 'bank');
    permits[0]?.grant();
    assert.equal((await later).servedFrom, 'shared');
    assert.equal(bank.reads, 1);
  });

  test('is not sent without a permit', async () => {
    const { bank, one, permits, laterRead, settle } = start();
    const reads = Promise.allSettled([one.send(laterRead()), one.send(laterRead())]);
    await settle();
    permits[0]?.refuse();
    assert.deepEqual(
      (await reads).map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.equal(bank.reads, 0);
  });

  test('gets the status of the time at which it is sent', async () => {
    const { bank, one, permits, laterRead, settle } = start('RCVD');
    const later = one.send(laterRead());
    await settle();
    bank.status = 'ACTC';
    await one.send(statusRead({ headers: [['Cache-Control', 'no-cache']] }));
    permits[0]?.grant();
    assert.equal(statusIn(await later), 'ACTC');
  });
});
