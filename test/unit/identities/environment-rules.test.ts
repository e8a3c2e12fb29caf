import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { applyEnvironmentSettings, movedBankWarnings } from '../../../src/identities/environment-rules.ts';
import type { EnvironmentRecord } from '../../../src/identities/identities-record.ts';
import type { EnvironmentIdentitySettings } from '../../../src/identities/identity-settings.ts';

const environment = (bank: string, movedFrom: readonly string[] = []): EnvironmentIdentitySettings => ({
  name: 'sandbox',
  bank,
  movedFrom,
});

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
});
