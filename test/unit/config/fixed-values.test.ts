/** The address of an environment at its bank: path, accepted parameters, and the fields and parameters of every request. */

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { stringify } from 'yaml';
import { configChanges, describeChange } from '../../../src/config/config-changes.ts';
import { readFixedValues, saysSecret } from '../../../src/config/fixed-values.ts';
import { loadConfigAndFiles } from '../../../src/config/load.ts';
import { redactConfig } from '../../../src/config/redact.ts';
import type { EnvironmentSettings } from '../../../src/config/schema.ts';
import { listSettings, showConfig } from '../../../src/config/show-config.ts';
import { namesKeptFromBank } from '../../kit/fields.ts';
import { temporaryFolder, withFile } from '../../kit/folder.ts';
import { configOf } from '../../kit/gateway.ts';
import { errorsIn, loadValid, minimalConfig } from './load-text.ts';

const baseUrl = 'https://api.bank.example/psd2';
const textOf = (environment: object) => stringify({ environments: { sandbox: { baseUrl, ...environment } } });

function environmentOf(environment: object, variables = {}): EnvironmentSettings {
  const [only] = loadValid(textOf(environment), variables).environments.all;
  return only ?? assert.fail();
}

/** The messages, without line and path of the environment. */
const messagesOf = (environment: object): readonly string[] =>
  errorsIn(textOf(environment)).map((error) => error.replace(/^:\d+ environments\.sandbox\./, ''));

/** As `messagesOf`, with files and variables. */
const fileMessagesOf = (environment: object, variables = {}): readonly string[] =>
  withFile(textOf(environment), (file) => {
    const loaded = loadConfigAndFiles(file, variables);
    if (loaded.kind === 'valid') return [];
    return loaded.errors.map((error) => error.replace(file, '').replace(/^:\d+ environments\.sandbox\./, ''));
  });

describe('the path at the bank', () => {
  const prefixOf = (environment: object) => environmentOf(environment).prefixes.getPayment;

  test('consists of base path, segment and version, without empty segments', () => {
    assert.equal(prefixOf({}), '/psd2/berlingroup/v1');
    assert.equal(prefixOf({ segment: '' }), '/psd2/v1');
    assert.equal(
      prefixOf({ segment: 'xs2a-api/70150000', pathVersion: 'v2.1' }),
      '/psd2/xs2a-api/70150000/v2.1',
    );
    assert.equal(prefixOf({ segment: '', pathVersion: '' }), '/psd2');
    assert.equal(prefixOf({ pathVersion: '3.0.0/v1' }), '/psd2/berlingroup/3.0.0/v1');
    assert.equal(prefixOf({ baseUrl: 'https://bank.example/', segment: '', pathVersion: '' }), '');
  });

  test('has the standard segment by default', () => {
    const [sandbox] = loadValid(`${minimalConfig}standard: { segment: a/b }`).environments.all;
    assert.deepEqual([sandbox?.segment, sandbox?.prefixes.initiatePayment], ['a/b', '/a/b/v1']);
  });

  test('has a version for each operation, v1 by default', () => {
    const { prefixes } = environmentOf({
      segment: '',
      pathVersion: { default: 'v1.1', startAuthorisation: 'v1' },
    });
    assert.deepEqual([prefixes.initiatePayment, prefixes.startAuthorisation], ['/psd2/v1.1', '/psd2/v1']);
    const other = environmentOf({ segment: '', pathVersion: { cancelPayment: '' } }).prefixes;
    assert.deepEqual([other.initiatePayment, other.cancelPayment], ['/psd2/v1', '/psd2']);
  });

  test('has no dot segments, slashes at the ends, and characters that a path cannot contain', () => {
    for (const text of ['..', 'a/./b', '/a', 'a/', 'a//b', 'a b', 'a?b', 'a%2fb', 'ä']) {
      for (const settings of [
        { segment: text },
        { pathVersion: text },
        { pathVersion: { default: text } },
        { pathVersion: { getPayment: text } },
      ]) {
        const [message, ...others] = messagesOf(settings);
        assert.match(
          message ?? '',
          /^(segment|pathVersion[.a-zA-Z]*): expected path segments of letters/,
          JSON.stringify(settings),
        );
        assert.deepEqual(others, []);
      }
    }
  });

  test('does not accept numbers, which YAML may have changed', () => {
    for (const settings of [{ segment: 12 }, { pathVersion: 1.1 }])
      assert.match(messagesOf(settings).join(), /in quotes/);
  });

  test('is not null, and the error says what to write', () => {
    assert.deepEqual(messagesOf({ segment: null }), [
      'segment: expected path segments of letters, digits, ".", "_", "~" and "-", without a slash at either end, or "" for none',
    ]);
  });

  test('has errors at the versions of the operations that are wrong, not at the whole mapping', () => {
    const [second = '', first = '', ...others] = messagesOf({ pathVersion: { defalt: 'v2', getPayment: 2 } });
    assert.match(
      first,
      /^pathVersion\.getPayment: expected path segments .* it is a number: write it in quotes$/,
    );
    assert.match(second, /^pathVersion\.defalt: unknown key defalt; .*\(did you mean default\?\)$/);
    assert.deepEqual(others, []);
  });

  test('does not accept unknown operations', () => {
    assert.match(
      messagesOf({ pathVersion: { startAuthorization: 'v1' } }).join(),
      /^pathVersion\.startAuthorization: unknown key startAuthorization; .*\(did you mean startAuthorisation\?\)$/,
    );
  });

  test('can be set by environment variables', () => {
    const { prefixes, queryParameters, headers } = environmentOf(
      { segment: 'x' },
      {
        PENSTOCK_ENVIRONMENTS_SANDBOX_SEGMENT: '',
        PENSTOCK_ENVIRONMENTS_SANDBOX_PATH_VERSION: '{ "default": "v2", "getPayment": "" }',
        PENSTOCK_ENVIRONMENTS_SANDBOX_QUERY_PARAMETERS: 'bic, app-id',
        PENSTOCK_ENVIRONMENTS_SANDBOX_HEADERS: '{ "web-api-key": { "env": "PORTAL" } }',
      },
    );
    assert.deepEqual([prefixes.initiatePayment, prefixes.getPayment], ['/psd2/v2', '/psd2']);
    assert.deepEqual(queryParameters, ['bic', 'app-id']);
    assert.deepEqual(headers, { 'web-api-key': { env: 'PORTAL' } });
  });
});

describe('the query parameters that TPPs may send', () => {
  test('are any, none or a list', () => {
    const parametersOf = (environment: object) => environmentOf(environment).queryParameters;
    assert.equal(parametersOf({}), 'any');
    assert.equal(parametersOf({ queryParameters: 'any' }), 'any');
    assert.deepEqual(parametersOf({ queryParameters: 'none' }), []);
    assert.deepEqual(parametersOf({ queryParameters: ['bic'] }), ['bic']);
    for (const wrong of ['bic', true, [1], ['']])
      assert.match(
        messagesOf({ queryParameters: wrong }).join(),
        /^queryParameters(: expected any, none, or a list of names|\[0\]: expected the name of a parameter)/,
      );
    assert.deepEqual(messagesOf({ queryParameters: ['bic', 'bic'] }), [
      'queryParameters: expected each name once',
    ]);
  });
});

describe('the fields and parameters of every request', () => {
  test('may be any but those of the connection, of the gateway and of its clients', () => {
    const settable = [
      'web-api-key',
      'X-API-Key',
      'Date',
      'Authorization',
      'X-IBM-Client-Id',
      'PSU-IP-Address',
      'aspsp-code',
    ];
    assert.deepEqual(messagesOf({ headers: Object.fromEntries(settable.map((name) => [name, 'text'])) }), []);
    for (const name of [
      ...namesKeptFromBank.filter((kept) => kept !== 'X-API-Key'),
      'content-type',
      'CONTENT-ENCODING',
      'Content-MD5',
      'penstock-anything',
      'X-Request-ID',
      'Digest',
      'Accept-Encoding',
      'signature',
    ])
      assert.match(messagesOf({ headers: { [name]: 'text' } }).join(), /: this field cannot be set: /, name);
  });

  test('have names that can be sent', () => {
    for (const name of ['x_api_key', 'x y', 'x:y', 'ä', 'x\ny', 'a'.repeat(129)])
      assert.match(
        messagesOf({ headers: { [name]: 'text' } }).join(),
        /: expected the name of a header field/,
        name,
      );
    for (const name of ['', 'a\tb', 'a'.repeat(129)])
      assert.match(
        messagesOf({ query: { [name]: 'text' } }).join(),
        /: expected the name of a query parameter/,
        name,
      );
    assert.deepEqual(messagesOf({ query: { 'app_id[]': 'ü' } }), []);
  });

  test('have each name once, in any case, and are at most 32', () => {
    assert.deepEqual(messagesOf({ headers: { 'x-bic': 'a', 'X-BIC': 'b' } }), [
      'headers.X-BIC: same name as x-bic; remove one of them',
    ]);
    assert.deepEqual(messagesOf({ query: { bic: 'a', BIC: 'b' } }), [
      'query.BIC: same name as bic; remove one of them',
    ]);
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, 'a']));
    assert.deepEqual(messagesOf({ headers: many(32), query: many(32) }), []);
    assert.deepEqual(messagesOf({ headers: many(33), query: many(33) }), [
      'headers: expected at most 32 entries',
      'query: expected at most 32 entries',
    ]);
  });

  test('have texts that can be sent, and errors do not quote them', () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ['', /the text is empty/],
      ['canary\nX-Injected: 1', /the text contains a line break/],
      ['canary\r', /the text contains a line break/],
      ['canary\0', /the text contains a control character/],
      ['canary\t1', /the text contains a control character/],
      ['canaryü', /the text contains a character that is not ASCII/],
      [' canary', /the text begins or ends with a space/],
      ['canary'.repeat(2_000), /the text is longer than 8 KiB/],
    ];
    for (const [text, message] of cases) {
      const [only = '', ...others] = messagesOf({ headers: { 'x-bic': text } });
      assert.match(only, message);
      assert.doesNotMatch(only, /canary/);
      assert.deepEqual(others, []);
    }
  });

  test('have values of one of three forms', () => {
    for (const value of [12, true, null, ['a'], {}, { fil: 'a' }, { file: 'a', env: 'b' }, { file: 1 }])
      assert.match(
        messagesOf({ headers: { 'x-bic': value } })[0] ?? '',
        /^headers\.x-bic(: expected a text, \{ file: PATH \} or \{ env: NAME \}|\.fil: unknown key)/,
        JSON.stringify(value),
      );
    assert.deepEqual(messagesOf({ headers: { 'x-bic': { fil: '/x' } } }), [
      'headers.x-bic.fil: unknown key fil; allowed: file, env (did you mean file?)',
    ]);
    assert.match(
      messagesOf({ query: { bic: 12 } }).join(),
      /without quotes, this is a number: write it in quotes$/,
    );
    assert.match(
      messagesOf({ query: { bic: { env: 'a-b' } } }).join(),
      /^query\.bic: expected the name of an environment variable$/,
    );
    assert.match(
      messagesOf({ query: { bic: { env: 'PENSTOCK_BIC' } } }).join(),
      /^query\.bic: variables that begin with PENSTOCK_ are settings/,
    );
    assert.match(
      messagesOf({ query: { bic: { file: '' } } }).join(),
      /^query\.bic: expected the path of a file$/,
    );
    assert.match(messagesOf({ headers: ['x-bic'] }).join(), /^headers: expected a mapping/);
  });

  test('cannot be set one by one by environment variables, and the error says what to do', () => {
    const [message] = errorsIn(minimalConfig, {
      PENSTOCK_ENVIRONMENTS_SANDBOX_HEADERS_WEB_API_KEY: 'canary',
    });
    assert.match(
      message ?? '',
      /a single entry; set PENSTOCK_ENVIRONMENTS_SANDBOX_HEADERS to all of them as JSON, or write \{ env: NAME \}/,
    );
    assert.doesNotMatch(message ?? '', /canary/);
  });
});

describe('the files and variables of fixed values', () => {
  test('are read without one line break at the end', (t) => {
    const folder = temporaryFolder(t);
    const files = { plain: 'one', unix: 'two\n', windows: 'three\r\n' };
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
    const variables = { PORTAL: 'four' };
    const headers = {
      a: { file: join(folder, 'plain') },
      b: { file: join(folder, 'unix') },
      c: { file: join(folder, 'windows') },
      d: { env: 'PORTAL' },
      e: 'five',
    };
    const environment = environmentOf({ headers, query: { bic: { env: 'PORTAL' } } });
    assert.deepEqual(fileMessagesOf({ headers }, variables), []);
    const { values, errors } = readFixedValues(environment, variables, (file) =>
      Buffer.from(files[file.slice(folder.length + 1) as keyof typeof files]),
    );
    assert.deepEqual(errors, []);
    assert.deepEqual(
      values.headers.map(([, value]) => value),
      ['one', 'two', 'three', 'four', 'five'],
    );
    assert.deepEqual(values.query, [['bic', 'four']]);
  });

  test('that cannot be used are errors that name setting and file, and quote no value', (t) => {
    const folder = temporaryFolder(t);
    const file = (name: string, content: string | Buffer) => {
      writeFileSync(join(folder, name), content);
      return { file: join(folder, name) };
    };
    mkdirSync(join(folder, 'folder'));
    const headers = {
      a: { file: join(folder, 'missing') },
      b: { file: join(folder, 'folder') },
      c: file('empty', '\n'),
      d: file('lines', 'canary\n\n'),
      e: file('long', 'canary'.repeat(2_000)),
      f: file('binary', Buffer.of(0xff, 0xfe)),
      g: { env: 'UNSET' },
      h: { env: 'EMPTY' },
      i: { env: 'LINES' },
    };
    const messages = fileMessagesOf({ headers }, { EMPTY: '', LINES: 'canary\r\nX: canary' });
    assert.deepEqual(messages, [
      `headers.a.file: ENOENT: ${folder}/missing`,
      `headers.b.file: EISDIR: ${folder}/folder`,
      `headers.c.file: the file ${folder}/empty is empty; write the value`,
      `headers.d.file: the file ${folder}/lines contains a line break; write the value as one line`,
      `headers.e.file: the file ${folder}/long is longer than 8 KiB`,
      `headers.f.file: the file ${folder}/binary is not a text in UTF-8; save it in this encoding`,
      'headers.g.env: the environment variable UNSET is not set; set it for the process of the gateway',
      'headers.h.env: the environment variable EMPTY is empty; write the value',
      'headers.i.env: the environment variable LINES contains a line break; write the value as one line',
    ]);
    assert.deepEqual(messagesOf({ headers }), [], 'commands that do not use the values do not read them');
  });
});

describe('the names that say that a value is a secret', () => {
  test('have a word for it, between hyphens, underscores or capitals', () => {
    for (const name of [
      'web-api-key',
      'x_apikey',
      'webApiKey',
      'X-IBM-Client-Secret',
      'access_token',
      'Authorization',
      'PSD2-AUTHORIZATION',
      'X-Auth',
      'password',
      'PIN',
      'X-Credentials',
      'Ocp-Apim-Subscription-Key',
      'key2',
      'X-SessionToken',
      'bearertoken',
      'apiKEY',
    ])
      assert.ok(saysSecret(name), name);
    for (const name of [
      'monkey-BIC',
      'TPP-Authorisation-Id',
      'X-Bank-Authority',
      'Keyboard',
      'X-Spin',
      'author',
    ])
      assert.ok(!saysSecret(name), name);
  });
});

describe('the configuration that operators see', () => {
  const secret = 'canary';
  const headers = {
    'web-api-key': secret,
    'x.key': secret,
    'X-BIC': 'HABAEE2X',
    portal: { env: 'PORTAL' },
    vault: { file: '/run/vault' },
  };
  const query = { access_token: secret, bic: 'HABAEE2X' };
  const text = textOf({ headers, query });
  const variables = { PORTAL: secret };

  test('has no value of a variable, and no text whose name says that it is a secret', () => {
    withFile(text, (file) => {
      const loaded = loadConfigAndFiles(file, { ...variables });
      const errors =
        loaded.kind === 'invalid' ? loaded.errors.map((error) => error.replace(/^.*:\d+ /, '')) : [];
      assert.deepEqual(errors, ['environments.sandbox.headers.vault.file: ENOENT: /run/vault']);
    });
    const config = configOf({ environments: { sandbox: { baseUrl, headers, query } } }, variables);
    const shown = JSON.stringify(redactConfig(config));
    assert.doesNotMatch(shown, /canary/);
    assert.match(
      shown,
      /"web-api-key":"\*\*\*","x\.key":"\*\*\*","X-BIC":"HABAEE2X","portal":\{"env":"PORTAL"\},"vault":\{"file":"\/run\/vault"\}/,
    );
  });

  test('can be used as a configuration, and says what is masked', () => {
    const config = textOf({ headers: { 'web-api-key': secret, 'X-BIC': 'A' } });
    withFile(config, (file) => {
      const loaded = loadConfigAndFiles(file, {});
      if (loaded.kind === 'invalid') return assert.fail(loaded.errors.join());
      const shown = showConfig(loaded);
      assert.doesNotMatch(shown, /canary/);
      assert.match(shown, /web-api-key: "\*\*\*" # line \d+, masked/);
      assert.match(shown, /segment: berlingroup # default: as in standard\.segment/);
      assert.doesNotMatch(JSON.stringify(listSettings(loaded)), /canary/);
      assert.deepEqual(errorsIn(shown), []);
    });
  });

  test('reports a changed secret without its value', () => {
    const change = (before: object, after: object) =>
      configChanges(
        configOf({ environments: { sandbox: { baseUrl, headers: before } } }),
        configOf({ environments: { sandbox: { baseUrl, headers: after } } }),
      ).map(describeChange);
    assert.deepEqual(change({ 'x.key': 'canary' }, { 'x.key': 'canary2' }), [
      'environments.sandbox.headers.x.key: changed (secret)',
    ]);
    assert.deepEqual(change({ 'x.key': 'canary' }, { 'x.key': { file: '/k' } }), [
      'environments.sandbox.headers.x.key: *** -> { file: /k }',
    ]);
    assert.deepEqual(change({ 'X-BIC': 'A' }, { 'X-BIC': 'B' }), [
      'environments.sandbox.headers.X-BIC: A -> B',
    ]);
    assert.deepEqual(change({}, { 'x-key': 'canary' }), [
      'environments.sandbox.headers.x-key: (not set) -> ***',
    ]);
  });
});
