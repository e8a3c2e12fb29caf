import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  applyEnvironmentSettings,
  continuedBankWarnings,
  movedBankWarnings,
} from '../../../src/identities/environment-rules.ts';
import type { EnvironmentRecord } from '../../../src/identities/identities-record.ts';
import {
  type EnvironmentIdentitySettings,
  identitySettingsOf,
} from '../../../src/identities/identity-settings.ts';
import { configOf } from '../../kit/gateway.ts';

const environment = (
  bank: string,
  movedFrom: readonly string[] = [],
  isShared = false,
): EnvironmentIdentitySettings => ({ name: 'sandbox', bank, isShared, movedFrom });

const recorded = (ids: readonly string[], banks: readonly string[]): EnvironmentRecord => ({
  ids: [...ids],
  name: 'sandbox',
  banks: [...banks],
});

const cases: readonly {
  readonly title: string;
  readonly record: readonly EnvironmentRecord[];
  readonly configured: EnvironmentIdentitySettings;
  readonly expected: readonly EnvironmentRecord[];
}[] = [
  {
    title: 'the first bank of an environment is identified by the name of the environment',
    record: [],
    configured: environment('https://one'),
    expected: [recorded(['sandbox'], ['https://one'])],
  },
  {
    title: 'another address is another bank',
    record: [recorded(['sandbox'], ['https://one'])],
    configured: environment('https://two'),
    expected: [recorded(['sandbox'], ['https://one']), recorded(['sandbox@2'], ['https://two'])],
  },
  {
    title: 'the first address is the first bank again',
    record: [recorded(['sandbox'], ['https://one']), recorded(['sandbox@2'], ['https://two'])],
    configured: environment('https://one'),
    expected: [recorded(['sandbox'], ['https://one']), recorded(['sandbox@2'], ['https://two'])],
  },
  {
    title: 'a bank that moved keeps its identity',
    record: [recorded(['sandbox'], ['https://one'])],
    configured: environment('https://two', ['https://one']),
    expected: [recorded(['sandbox'], ['https://one', 'https://two'])],
  },
  {
    title: 'an instance that still has the old address calls the same bank',
    record: [recorded(['sandbox'], ['https://one', 'https://two'])],
    configured: environment('https://one'),
    expected: [recorded(['sandbox'], ['https://one', 'https://two'])],
  },
  {
    title: 'the only environment at an address keeps its identity with another segment',
    record: [recorded(['sandbox'], ['https://hub#one'])],
    configured: environment('https://hub#two'),
    expected: [recorded(['sandbox'], ['https://hub#one', 'https://hub#two'])],
  },
  {
    title: 'an environment that becomes one of several at its address keeps its identity',
    record: [recorded(['sandbox'], ['https://hub#one'])],
    configured: environment('https://hub#one', [], true),
    expected: [recorded(['sandbox'], ['https://hub#one'])],
  },
  {
    title: 'one of several environments at an address is another bank if what distinguishes it changes',
    record: [recorded(['sandbox'], ['https://hub#one'])],
    configured: environment('https://hub#two', [], true),
    expected: [recorded(['sandbox'], ['https://hub#one']), recorded(['sandbox@2'], ['https://hub#two'])],
  },
  {
    title: 'one of several environments at an address is the same bank if it is declared as moved from there',
    record: [recorded(['sandbox'], ['https://hub#one'])],
    configured: environment('https://hub#two', ['https://hub'], true),
    expected: [recorded(['sandbox'], ['https://hub#one', 'https://hub#two', 'https://hub'])],
  },
  {
    title: 'a former bank at the address keeps an identity of its own if the configured one is recorded',
    record: [recorded(['sandbox'], ['https://hub#one']), recorded(['sandbox@2'], ['https://hub#two'])],
    configured: environment('https://hub#two'),
    expected: [recorded(['sandbox'], ['https://hub#one']), recorded(['sandbox@2'], ['https://hub#two'])],
  },
  {
    title: 'a bank that is declared as moved later has both identities',
    record: [recorded(['sandbox'], ['https://one']), recorded(['sandbox@2'], ['https://two'])],
    configured: environment('https://two', ['https://one']),
    expected: [recorded(['sandbox', 'sandbox@2'], ['https://one', 'https://two'])],
  },
];

describe('the rules for environments', () => {
  for (const { title, record, configured, expected } of cases) {
    test(title, () => {
      const result = applyEnvironmentSettings(record, [configured]);
      assert.deepEqual(result, expected);
      assert.deepEqual(applyEnvironmentSettings(result, [configured]), result);
    });
  }

  test('the warning about another address says what to write', () => {
    const record = [recorded(['sandbox'], ['https://one']), recorded(['sandbox@2'], ['https://two'])];
    const [warning, ...more] = movedBankWarnings(record, [environment('https://two')]);
    assert.match(warning ?? '', /environments\.sandbox\.movedFrom: \[https:\/\/one\]/);
    assert.deepEqual(more, []);
  });

  test('an only environment at its address whose segment or texts change continues its payments, and one warning says so', () => {
    const before = [recorded(['sandbox'], ['https://hub#one'])];
    const [warning, ...more] = continuedBankWarnings(before, [environment('https://hub#two')]);
    assert.match(
      warning ?? '',
      /^environments\.sandbox: segment, headers or query has changed, .* payments created before continue/,
    );
    assert.deepEqual(more, []);
    for (const without of [
      environment('https://hub#one'),
      environment('https://hub#two', [], true),
      environment('https://hub#two', ['https://hub']),
      environment('https://other'),
    ])
      assert.deepEqual(continuedBankWarnings(before, [without]), [], without.bank);
    const after = applyEnvironmentSettings(before, [environment('https://hub#two')]);
    assert.deepEqual(continuedBankWarnings(after, [environment('https://hub#two')]), []);
  });

  test('the warning about another bank at the same hub names no value', () => {
    const record = [recorded(['sandbox'], ['https://hub#one']), recorded(['sandbox@2'], ['https://hub#two'])];
    assert.deepEqual(movedBankWarnings(record, [environment('https://hub#two', [], true)]), [
      'environments.sandbox.segment, headers or query has changed: requests for payments created at https://hub are refused; if it is the same bank, set environments.sandbox.movedFrom: [https://hub]',
    ]);
  });
});

describe('the identity of a bank', () => {
  const identitiesOf = (environments: Readonly<Record<string, object>>) =>
    identitySettingsOf(
      configOf({
        environments: {
          active: Object.keys(environments)[0],
          ...Object.fromEntries(
            Object.entries(environments).map(([name, more]) => [
              name,
              { baseUrl: 'https://hub.example', ...more },
            ]),
          ),
        },
      }),
    ).environments;
  const bankOf = (settings: object) => identitiesOf({ only: settings })[0]?.bank;

  test('depends on the segment, and on all texts of headers and queries, whatever their names say', () => {
    const settings = [
      {},
      { segment: 'x' },
      { headers: { 'X-BIC': 'A' } },
      { headers: { 'X-BIC': 'B' } },
      { headers: { 'X-Bank-Authority': 'A' } },
      { headers: { 'X-Bank-Authority': 'B' } },
      { headers: { 'web-api-key': 'A' } },
      { headers: { 'web-api-key': 'B' } },
      { query: { bic: 'A' } },
    ];
    assert.equal(new Set(settings.map(bankOf)).size, settings.length);
  });

  test('does not depend on values of files and variables, versions, and the spelling of a name', () => {
    const headers = { 'X-BIC': 'A' };
    const bank = bankOf({ headers });
    for (const same of [
      { headers: { 'x-bic': 'A' } },
      { headers, segment: 'berlingroup' },
      { headers, pathVersion: 'v2' },
      { headers: { ...headers, 'web-api-key': { file: '/a' } } },
      { headers: { ...headers, portal: { file: '/a' } } },
      { headers, query: { portal: { env: 'PORTAL' } } },
    ])
      assert.equal(bankOf(same), bank, JSON.stringify(same));
  });

  test('shows whether it shares its address', () => {
    const shared = identitiesOf({
      a: { segment: 'a' },
      b: { segment: 'b' },
      c: { baseUrl: 'https://other.example' },
    });
    assert.deepEqual(
      shared.map(({ isShared }) => isShared),
      [true, true, false],
    );
  });
});
