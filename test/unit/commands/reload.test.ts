import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { reload } from '../../../src/commands/reload.ts';
import { fakeAdminClient } from './fake-admin-client.ts';

describe('penstock reload', () => {
  test('sends the reason, and prints the changed settings and those that need a restart', async () => {
    const report = {
      changes: [{ setting: 'deadlines.write', from: '35s', to: '20s' }],
      restartRequired: [{ setting: 'state.redis', from: null, to: '***' }],
    };
    const { call, calls } = fakeAdminClient(200, report);
    assert.deepEqual(await reload(call, { reason: 'ticket 4711' }), {
      lines: [
        'Configuration reloaded:',
        '  deadlines.write: 35s -> 20s',
        'A restart is required for:',
        '  state.redis: (not set) -> ***',
      ],
      data: report,
      exitCode: 0,
    });
    assert.deepEqual(calls, [['POST', '/config/reload', { reason: 'ticket 4711' }]]);
  });

  test('reports that nothing has changed', async () => {
    const { lines } = await reload(fakeAdminClient(200, { changes: [], restartRequired: [] }).call, {});
    assert.deepEqual(lines, ['Configuration reloaded: no setting has changed.']);
  });

  test('fails with the errors of a configuration that cannot be used', async () => {
    const body = { error: 'Not reloaded.', errors: ['penstock.yaml:2 listen.port: expected a port'] };
    await assert.rejects(reload(fakeAdminClient(409, body).call, {}), {
      message: 'Not reloaded.\npenstock.yaml:2 listen.port: expected a port',
      data: { errors: body.errors },
      exitCode: 78,
    });
  });

  test('fails with the error of the gateway if the operator may not reload', async () => {
    const { call } = fakeAdminClient(403, { error: 'Changes require the role operate.' });
    await assert.rejects(reload(call, {}), { message: 'Changes require the role operate.', exitCode: 77 });
  });

  test('of all instances prints the answer of each, and fails unless all use the new configuration', async () => {
    const answer = (name: string, outcome: string) => ({
      ...{ name, outcome, errors: [] as string[], restartRequired: [] as string[] },
      configurationHash: 'a'.repeat(64),
    });
    const applied = { ...answer('one', 'applied'), restartRequired: ['log.level: info -> debug'] };
    const { call, calls } = fakeAdminClient(200, { instances: [applied] });
    const { lines, exitCode } = await reload(call, { all: true });
    assert.deepEqual(calls, [['POST', '/config/reload', { all: true }]]);
    assert.deepEqual(
      [exitCode, lines],
      [
        0,
        [
          'one: applied, configuration aaaaaaaaaaaa, a restart is required for:',
          '  log.level: info -> debug',
        ],
      ],
    );
    const refused = { ...answer('two', 'refused'), errors: ['penstock.yaml:2 listen.port: expected a port'] };
    const instances = [answer('one', 'applied'), refused, answer('three', 'no answer')];
    await assert.rejects(reload(fakeAdminClient(200, { instances }).call, { all: true }), {
      lines: [
        'one: applied, configuration aaaaaaaaaaaa',
        'two: refused, configuration aaaaaaaaaaaa',
        '  penstock.yaml:2 listen.port: expected a port',
        'three: no answer, configuration aaaaaaaaaaaa',
      ],
      exitCode: 78,
    });
  });
});
