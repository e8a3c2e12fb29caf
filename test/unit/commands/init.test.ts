/** The questions of `penstock init`. */

import assert from 'node:assert/strict';
import fs, { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, type TestContext, test } from 'node:test';
import { parse } from 'yaml';
import { bankNames } from '../../../src/commands/bank-example.ts';
import type { Options } from '../../../src/commands/command.ts';
import { init } from '../../../src/commands/init.ts';
import { root } from '../../kit/command.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { until } from '../../kit/within.ts';

/** Starts the command on a terminal that a test types into. */
function startInit(t: TestContext, options: Options = {}) {
  const folder = temporaryFolder(t);
  const [input, output] = [new PassThrough(), new PassThrough()];
  let said = '';
  output.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const result = init({ output: join(folder, 'penstock.yaml'), ...options }, { input, output });
  result.catch(() => {}); // a test looks at it later
  return {
    folder,
    result,
    end: () => input.end(),
    said: () => said,
    config: () => parse(readFileSync(join(folder, 'penstock.yaml'), 'utf8')),
    /** Waits for the question, and answers it. */
    async answer(question: string, text: string) {
      await until(10_000, `the command asks: ${question}`, () => said.includes(question));
      said = '';
      input.write(`${text}\n`);
    },
  };
}

describe('the questions of penstock init', () => {
  test('have defaults, and are asked again after an answer that cannot be used', async (t) => {
    const { answer, result, config } = startInit(t);
    await answer('Interface of the bank. Press Enter if your bank is not in the list', 'nobody');
    await answer('--bank-like: no such example', 'deutsche-bank');
    await answer("URL of the bank's sandbox", '');
    await answer("URL of the bank's production API", '');
    await answer('Penstock needs the URL of the sandbox, of the production API, or both.', '');
    await answer("URL of the bank's production API", 'http://bank.test');
    await answer('--production-url: http: is allowed on loopback only', 'https://bank.test/pis/DE');
    await answer('Folder with the client certificates', '');
    await answer('Name of the TPP system', '');
    await answer('--client: missing', 'checkout');
    await answer('Name of the operator', 'ann');
    await answer('[sqlite]', 'oracle');
    await answer('--database: expected sqlite', 'memory');
    await answer('Redis', '');
    await answer('URL under which TPP systems reach the gateway', '');
    await result;
    const { environments, clients, admin, state } = config();
    assert.deepEqual(environments, {
      active: 'production',
      production: { baseUrl: 'https://bank.test/pis/DE', segment: 'DB', standardVersion: '1.3.11' },
    });
    assert.deepEqual([clients[0].name, admin.operators[0].name, state], ['checkout', 'ann', undefined]);
  });

  test('are asked only about what no option says', async (t) => {
    const { answer, result, config, said } = startInit(t, {
      ...{ bankLike: 'kbc', sandboxUrl: 'https://bank.test', certificates: '/certs', operator: 'ann' },
      ...{ productionUrl: 'https://live.bank.test', database: 'sqlite', redis: 'rediss://host' },
      publicUrl: 'https://tpp.test',
    });
    await answer('Name of the TPP system', 'shop');
    await result;
    assert.equal(said(), '');
    assert.equal(config().clients[0].name, 'shop');
  });

  test('are not asked if an option is wrong', async (t) => {
    const { result, said } = startInit(t, { client: 'a b' });
    await assert.rejects(result, /--client: expected a name/);
    assert.equal(said(), '');
  });

  test('write nothing if the input ends before the last answer', async (t) => {
    const { answer, result, end, folder } = startInit(t, { bankLike: 'kbc' });
    await answer("URL of the bank's sandbox", 'https://bank.test');
    end();
    await assert.rejects(result, { exitCode: 1, message: /Nothing was written/ });
    assert.deepEqual(readdirSync(folder), []);
  });
});

describe('penstock init writes nothing', () => {
  const valid = { sandboxUrl: 'https://bank.test', client: 'checkout' };

  for (const [output, options, why] of [
    [
      'penstock.db',
      {},
      /^--database: .*penstock\.db cannot be both the configuration and the database; change --database or --output\n/,
    ],
    ['penstock.db-wal', {}, /^--database: .* the configuration and the database/],
    ['x.yaml', { database: 'x.yaml' }, /^--database: .* the configuration and the database/],
    ['p.yaml', { database: 'link/p.yaml' }, /^--database: .* the configuration and the database/],
    [
      'p.yaml',
      { database: 'checkout.api-key' },
      /^--database: .* the API key of checkout and the database; change --database or --client or --output\n/,
    ],
    [
      'p.yaml',
      { database: 'operator.token' },
      /^--database: .* the token of the operator operator and the database/,
    ],
    [
      'p.yaml',
      { database: 'encryption.key' },
      /^--database: .* the key that encrypts stored responses and the database/,
    ],
    ['checkout.api-key', {}, /^--client: .* the configuration and the API key of checkout/],
    ['operator.token', {}, /^--operator: .* the configuration and the token of the operator/],
    [
      'encryption.key',
      {},
      /^--output: .*encryption\.key cannot be both the configuration and the key that .*; change --output\n/,
    ],
  ] as const)
    test(`if ${output} would have two purposes, with ${JSON.stringify(options)}`, async (t) => {
      const folder = join(temporaryFolder(t), 'own');
      mkdirSync(folder);
      symlinkSync(folder, join(folder, 'link'));
      const { database } = { database: undefined, ...options };
      const given = database && { database: `sqlite:${join(folder, database)}` };
      const result = init({ ...valid, output: join(folder, output), ...given }, undefined);
      await assert.rejects(result, ({ message }) => {
        assert.match(message, why);
        assert.equal(message.split('\n').length, 2, message);
        return true;
      });
      assert.deepEqual(readdirSync(folder), ['link']);
    });

  test('on a full disk, and names the file without advice about folders', async (t) => {
    const folder = temporaryFolder(t);
    const write = t.mock.method(fs, 'writeFileSync', () => {
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    });
    syncBuiltinESMExports();
    const output = join(folder, 'penstock.yaml');
    const result = init({ ...valid, output }, undefined);
    write.mock.restore();
    syncBuiltinESMExports();
    await assert.rejects(result, { message: `ENOSPC: ${output}. Nothing was written.` });
    assert.deepEqual(readdirSync(folder), []);
  });
});

describe('penstock init', () => {
  for (const bankLike of bankNames())
    test(`takes the example ${bankLike} for two environments, and keeps keys of the portal in files`, async (t) => {
      const output = join(temporaryFolder(t), 'penstock.yaml');
      const { data } = await init(
        {
          ...{ output, bankLike, sandboxUrl: 'https://sandbox.test', productionUrl: 'https://bank.test' },
          client: 'checkout',
        },
        undefined,
      );
      const example = parse(readFileSync(join(root, `config/banks/${bankLike}.yaml`), 'utf8'));
      const { environments, standard } = parse(readFileSync(output, 'utf8'));
      assert.deepEqual(standard, example.standard);
      for (const environment of [environments.sandbox, environments.production]) {
        const { baseUrl, standardVersion, headers, ...others } = environment;
        const { baseUrl: _, headers: shown, ...expected } = example.environments.production;
        assert.deepEqual(others, expected);
        assert.deepEqual(Object.keys(headers ?? {}), Object.keys(shown ?? {}));
      }
      assert.doesNotMatch(JSON.stringify(environments), /x-api-key":"CHANGE|client-id":"CHANGE/i);
      assert.ok(data);
    });

  test('names only pages that exist in its comments', async (t) => {
    const output = join(temporaryFolder(t), 'penstock.yaml');
    await init(
      { output, sandboxUrl: 'https://bank.test', client: 'checkout', bankLike: 'redsys' },
      undefined,
    );
    const pages = [...readFileSync(output, 'utf8').matchAll(/docs\/[\w/-]+\.md/g)].map(([page]) => page);
    assert.ok(pages.length > 10);
    assert.deepEqual(
      pages.filter((page) => !existsSync(join(root, page))),
      [],
    );
  });
});
