/** deploy/systemd agrees with the gateway that it starts. */

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { reusePortWarning } from '../../src/http/reuse-port.ts';
import { root } from '../kit/command.ts';
import { configIn, textOf } from './files.ts';

/** Every line `Key=value`, with the instance put in. */
const lines = textOf('deploy/systemd/penstock@.service')
  .replaceAll('%i', '2')
  .split('\n')
  .flatMap((line) => /^([A-Za-z]+)=(.*)$/.exec(line)?.slice(1, 3) ?? []);
const valuesOf = (key: string) =>
  lines.flatMap((text, index) => (index % 2 === 0 && text === key ? [lines[index + 1] ?? ''] : []));
const variables = Object.fromEntries(valuesOf('Environment').map((text) => text.split('=', 2)));

describe('the systemd unit', () => {
  test('starts processes that share the public port and have an admin port each', () => {
    const state = {
      PENSTOCK_STATE_POSTGRES: 'postgres://penstock@postgres.example:5432/penstock',
      PENSTOCK_STATE_REDIS: 'rediss://redis.example:6379/0',
    };
    const config = configIn('config/demo.yaml', { ...variables, ...state });
    assert.equal(config.listen.reusePort, true);
    assert.equal(config.admin.port, 9_092);
    assert.deepEqual(valuesOf('User'), ['penstock'], 'one user for all');
  });

  test('runs a program that exists, from its own folder', () => {
    const [program = ''] = valuesOf('ExecStart');
    const [, , script = '', command] = program.split(' ');
    assert.ok(existsSync(join(root, script.replace('/opt/penstock/', ''))), script);
    assert.equal(command, 'serve');
    for (const page of valuesOf('Documentation'))
      assert.ok(existsSync(join(root, page.replace('file:/opt/penstock/', ''))), page);
  });

  test('gives the process one folder to write to, which its user owns alone', () => {
    assert.deepEqual(valuesOf('ProtectSystem'), ['strict']);
    assert.deepEqual(valuesOf('StateDirectory'), ['penstock']);
    assert.deepEqual(valuesOf('StateDirectoryMode'), ['0700']);
  });

  test('creates no tables at a start, so that the gateway refuses an empty database', () => {
    assert.deepEqual(valuesOf('ExecStartPre'), []);
  });

  test('gives the gateway more time to stop than it needs at most, and does not restart it with an invalid configuration', () => {
    const { deadlines } = configIn('config/demo.yaml', {});
    assert.ok(Number(valuesOf('TimeoutStopSec')[0]) * 1_000 > deadlines.write + 6_000);
    assert.deepEqual(valuesOf('RestartPreventExitStatus'), ['64 78']);
  });

  test('restarts the gateway after any number of failures', () => {
    assert.deepEqual(valuesOf('Restart'), ['on-failure']);
    assert.deepEqual(valuesOf('StartLimitIntervalSec'), ['0']);
  });

  test('is installed with the kernel setting that the gateway asks for', () => {
    const setting = /^net\.\S+ = 1$/m.exec(textOf('deploy/systemd/penstock.conf'))?.[0] ?? '';
    assert.ok(reusePortWarning('/nonexistent')?.includes(setting.replaceAll(' ', '')), setting);
  });
});
