/** A loss of writes that a release without epochs has sent: no instance remembers them. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createInstance } from './instance.ts';
import { cluster, createForgetfulState } from './simulation/forgetful-state.ts';

async function loseAllBeside(lease: string | undefined) {
  const state = createForgetfulState(cluster);
  if (lease !== undefined) {
    await state.sets.add('ledger:holders', 'other');
    await state.keyValues.write('ledger:holder:other', lease);
  }
  const { services } = createInstance(state);
  await services.lossGuard.verify();
  assert.equal(services.lossGuard.report().status, 'ok');
  await services.lossGuard.verify();
  await state.loseAll();
  await services.lossGuard.verify();
  return services.lossGuard;
}

describe('after the state has lost everything, new writes', () => {
  test('are refused until an operator accepts the loss, if an instance of a former release ran', async () => {
    const lossGuard = await loseAllBeside(''); // the value of a lease of that release
    const { status, isUncovered, cause } = lossGuard.report();
    assert.deepEqual([status, isUncovered], ['lost', true], cause);
    assert.ok(await lossGuard.acceptLoss());
    assert.equal(lossGuard.report().status, 'ok');
  });

  test('are allowed if all instances have registered', async () => {
    for (const lease of [undefined, 'starting'])
      assert.equal((await loseAllBeside(lease)).report().status, 'ok', lease);
  });
});
