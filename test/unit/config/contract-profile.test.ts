/** Mistakes in the profile of a bank: each error names the line of the profile, and what to write instead. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readProfile } from '../../../src/config/contract-profile.ts';
import { loadConfigAndFiles } from '../../../src/config/load.ts';
import { withFile } from '../../kit/folder.ts';

function errorsIn(text: string): readonly string[] {
  const result = readProfile(Buffer.from(text), 'bank.yaml');
  return 'errors' in result ? result.errors : [];
}

test('a profile with mistakes is refused with the line, the key and the advice for each', () => {
  const text = `products: [domestic/transfers]
fields:
  - body: singelPayment
    field: creditorName
    maxLength: 35
  - body: singlePayment
    field: creditorNmae
    maxLength: 35
  - body: singlePayment
    field: creditorName
    maxlength: 35
  - body: amount
    field: currency
    oneOf: EUR
  - body: singlePayment
    field: bookingText
    presence: allowed
  - body: singlePayment
    field: creditorName
    presence: required
    effect: executed-at-once
  - body: bulkPayment
    field: payments
    maxLength: 3
  - body: singlePayment
    field: creditorName
    maxLength: 0
levels:
  - path: PSU-IP-Address
    rule: requried
    level: harmless
  - rule: required
levls: []
`;
  assert.deepEqual(errorsIn(text), [
    'bank.yaml:1 products[0]: expected a payment product, as in paths',
    'bank.yaml:3 fields[0].body: expected one of singlePayment, bulkPayment, bulkElement, periodicPayment, standingOrder, authorisationStart, authorisationUpdate, amount, account, address (did you mean singlePayment?)',
    "bank.yaml:7 fields[1].field: singlePayment has no field creditorNmae in the standard; correct it, or add presence for a field of the bank's own (did you mean creditorName?)",
    'bank.yaml:10 fields[2].field: nothing is changed; add presence, maxLength, oneOf or characters',
    'bank.yaml:11 fields[2].maxlength: unknown key; allowed: body, field, presence, effect, maxLength, oneOf, characters (did you mean maxLength?)',
    'bank.yaml:14 fields[3].oneOf: expected a list: a line that begins with "- " for each entry',
    'bank.yaml:17 fields[4].presence: expected one of optional, required, forbidden, ignored',
    'bank.yaml:21 fields[5].effect: only a field with presence: ignored has an effect; remove it',
    'bank.yaml:23 fields[6].field: payments is no text; remove maxLength, oneOf and characters',
    'bank.yaml:27 fields[7].maxLength: expected at least 1',
    'bank.yaml:29 levels[0].path: expected a path as in the report, such as headers/PSU-IP-Address or body/creditorName',
    'bank.yaml:30 levels[0].rule: no such rule; copy it from the report (did you mean required?)',
    'bank.yaml:31 levels[0].level: expected one of harmful, notable, usual',
    'bank.yaml:32 levels[1].path: required: a text; write numbers and dates in quotes',
    'bank.yaml:32 levels[1].level: expected one of harmful, notable, usual',
    'bank.yaml:33 levls: unknown key; allowed: products, fields, levels (did you mean levels?)',
  ]);
});

test('a file that is no mapping, or no YAML, is no profile', () => {
  assert.deepEqual(errorsIn('-----BEGIN PRIVATE KEY-----'), [
    'bank.yaml:1 expected a mapping: keys with values',
  ]);
  assert.match(errorsIn('fields: [')[0] ?? '', /^bank\.yaml:\d not valid YAML/);
  assert.deepEqual(errorsIn('fields: []\nfields: []'), [
    'bank.yaml:2 duplicate key, which is already in line 1; remove one of the two',
  ]);
});

test('a configuration with such a profile is refused before the start', () => {
  const errors = withFile('levels: 3\n', (profile) =>
    withFile(
      `environments:\n  sandbox:\n    baseUrl: https://a.example\n    contract: { profile: ${profile} }\n`,
      (file) => {
        const loaded = loadConfigAndFiles(file, {});
        const texts = loaded.kind === 'invalid' ? loaded.errors : [];
        return texts.map((text) => text.replace(file, 'penstock.yaml').replace(profile, 'bank.yaml'));
      },
    ),
  );
  assert.deepEqual(errors, [
    'penstock.yaml:4 environments.sandbox.contract.profile: the file has a mistake: bank.yaml:1 levels: expected a list: a line that begins with "- " for each entry',
  ]);
});
