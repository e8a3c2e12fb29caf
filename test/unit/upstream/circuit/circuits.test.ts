import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCircuits } from '../../../../src/upstream/circuit/circuits.ts';
import { settings } from './circuit-world.ts';

test('each environment and lane has a circuit of its own: what fails in one is no matter of another', async (t) => {
  const changes: unknown[] = [];
  const probe = async () => 'well' as const;
  const circuits = createCircuits(settings, {
    probes: new Map([
      ['sandbox', probe],
      ['production', probe],
    ]),
    holds: { of: () => undefined },
    changed: (change) => void changes.push(change),
  });
  t.after(() => circuits.close());

  for (let one = 0; one < 10; one++) await circuits.of('sandbox', 'write').run(async () => ({ status: 500 }));
  await Promise.resolve();

  const states = circuits.views().map(({ environment, lane, state }) => `${environment} ${lane} ${state}`);
  assert.deepEqual(states, [
    'sandbox write open',
    'sandbox read closed',
    'sandbox status closed',
    'production write closed',
    'production read closed',
    'production status closed',
  ]);
  assert.equal(changes.length, 1);
  assert.throws(() => circuits.of('nowhere', 'read'), /no environment nowhere/);
});
