/** `penstock config show` and `penstock config diff`. */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { check } from '../../../src/commands/check.ts';
import { diffConfigs, showEffectiveConfig } from '../../../src/commands/config.ts';
import { temporaryFolder } from '../../kit/folder.ts';

const environments = 'environments: { sandbox: { baseUrl: https://bank.test/psd2 } }\n';

function writeFiles(t: TestContext, ...texts: readonly string[]): readonly string[] {
  const folder = temporaryFolder(t);
  return texts.map((text, index) => {
    const file = join(folder, `${index}.yaml`);
    writeFileSync(file, text);
    return file;
  });
}

describe('penstock config show', () => {
  test('prints a configuration file that penstock check accepts', async (t) => {
    const client = `{ name: shop, apiKeySha256: ${'ab12'.repeat(16)} }`;
    const [config = ''] = writeFiles(t, `${environments}clients: [${client}]\ndeadlines: { write: 20s }\n`);
    const { lines, exitCode } = await showEffectiveConfig({ config });
    assert.equal(exitCode, 0);
    assert.ok(lines.includes('  write: 20s # line 3'), lines.join('\n'));

    const [shown = ''] = writeFiles(t, lines.join('\n'));
    const checked = await check({ config: shown });
    assert.equal(checked.lines[0], 'The configuration is valid.');
    const isMasked = /clients\[0\]\.apiKeySha256: this hash is a placeholder/;
    assert.ok(
      checked.lines.some((line) => isMasked.test(line)),
      'the masked hash must be replaced',
    );
  });

  test('lists the settings with their sources for --json', async (t) => {
    const [config = ''] = writeFiles(t, `${environments}deadlines: { write: 20s }\n`);
    const { data } = await showEffectiveConfig({ config });
    assert.ok(Array.isArray(data));
    const write = data.find(({ path }) => path.join('.') === 'deadlines.write');
    assert.deepEqual(write, { path: ['deadlines', 'write'], value: '20s', source: 'line 2' });
  });

  test('fails with all errors if the configuration is invalid', async (t) => {
    const [config = ''] = writeFiles(t, 'deadlines: { write: 20 }\n');
    await assert.rejects(showEffectiveConfig({ config }), { exitCode: 78, message: /^2 errors in the/ });
  });
});

describe('penstock config diff', () => {
  test('prints what a reload changes, and what needs a restart', async (t) => {
    const [config = '', other = ''] = writeFiles(
      t,
      `${environments}deadlines: { write: 20s }\n`,
      `${environments}listen: { maxBody: 2MiB }\nadmin: { port: 9999 }\nlog: { level: debug }\n`,
    );
    assert.deepEqual((await diffConfigs({ config }, other)).lines, [
      'A reload changes 2 settings:',
      '  listen.maxBody: 1MiB -> 2MiB',
      '  deadlines.write: 20s -> 35s',
      'A restart is required for 4 settings:',
      '  listen.errorPageUrl: http://127.0.0.1:9090/errors.html -> http://127.0.0.1:9999/errors.html',
      '  admin.port: 9090 -> 9999',
      '  admin.publicUrl: http://127.0.0.1:9090 -> http://127.0.0.1:9999',
      '  log.level: info -> debug',
    ]);
  });

  test('says so if there is no difference', async (t) => {
    const [config = '', other = ''] = writeFiles(t, environments, `# the same\n${environments}`);
    const { lines } = await diffConfigs({ config }, other);
    assert.deepEqual(lines, ['Both configurations have the same effect.']);
  });

  test('fails if one of the two is invalid', async (t) => {
    const [config = '', other = ''] = writeFiles(t, environments, 'environments: {}\n');
    await assert.rejects(diffConfigs({ config }, other), { exitCode: 78, message: /no environment/ });
    await assert.rejects(diffConfigs({ config }, '/nowhere.yaml'), { message: /ENOENT: \/nowhere\.yaml/ });
  });
});
