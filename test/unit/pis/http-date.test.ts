import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseHttpDate } from '../../../src/pis/http-date.ts';

const now = Date.parse('2026-11-22T12:00:00Z');
const parsed = (text: string, nowMs = now) => {
  const ms = parseHttpDate(text, nowMs);
  return ms === undefined ? undefined : new Date(ms).toISOString();
};

describe('parseHttpDate', () => {
  test('reads the three formats of RFC 9110', () => {
    const expected = '1994-11-06T08:49:37.000Z';
    assert.equal(parsed('Sun, 06 Nov 1994 08:49:37 GMT'), expected);
    assert.equal(parsed('Sunday, 06-Nov-94 08:49:37 GMT'), expected);
    assert.equal(parsed('Sun Nov  6 08:49:37 1994'), expected);
    assert.equal(parsed('Sun Nov 16 08:49:37 1994'), '1994-11-16T08:49:37.000Z');
  });

  test('reads every date that toUTCString writes', () => {
    fc.assert(
      fc.property(fc.integer({ min: -62_135_596_800, max: 253_402_300_799 }), (seconds) => {
        const date = new Date(seconds * 1_000);
        assert.equal(parseHttpDate(date.toUTCString(), now), date.getTime());
      }),
    );
  });

  test('ignores the letter case of names and of GMT', () => {
    for (const text of ['THU, 18 aug 2050 02:01:18 gMT', 'thursday, 18-AUG-50 02:01:18 gmt'])
      assert.equal(parsed(text), '2050-08-18T02:01:18.000Z', text);
  });

  test('takes a two-digit year that appears to be more than 50 years in the future for the past', () => {
    const year = (twoDigits: string, nowMs = now) =>
      parsed(`Sunday, 22-Nov-${twoDigits} 12:00:00 GMT`, nowMs)?.slice(0, 4);
    assert.deepEqual(
      ['00', '26', '75', '76', '77', '99'].map((digits) => year(digits)),
      [...['2000', '2026', '2075', '2076', '1977', '1999']],
    );
    assert.equal(parsed('Sunday, 22-Nov-76 12:00:01 GMT'), '1976-11-22T12:00:01.000Z');
    assert.equal(year('30', Date.parse('2090-01-01T00:00:00Z')), '2030');
  });

  test('reads a leap second as the second after it', () => {
    assert.equal(parsed('Sat, 31 Dec 2016 23:59:60 GMT'), '2017-01-01T00:00:00.000Z');
  });

  test('refuses everything else', () => {
    for (const text of [
      ...['', '0', '-1', '3600', 'soon', '2050-08-18 02:01', '2050-08-18T02:01:18Z'],
      'Thu, 18-Aug-2050 02:01:18 GMT',
      'Thu, 18-Aug-50 02:01:18 GMT',
      'Thursday, 18 Aug 2050 02:01:18 GMT',
      'Thursday, 18-Aug-2050 02:01:18 GMT',
      'Thu, 18 Aug 50 02:01:18 GMT',
      'Thu, 18 August 2050 02:01:18 GMT',
      'Thu 18 Aug 2050 02:01:18 GMT',
      'Xyz, 18 Aug 2050 02:01:18 GMT',
      '18 Aug 2050 02:01:18 GMT',
      'Thu, 8 Aug 2050 02:01:18 GMT',
      'Thu,  18 Aug 2050 02:01:18 GMT',
      'Thu, 18 Aug  2050 02:01:18 GMT',
      'Thu, 18 Aug 2050 2:01:18 GMT',
      'Thu, 18 Aug 2050 02:01 GMT',
      'Thu, 18 Aug 2050 02.01.18 GMT',
      'Thu, 18 Aug 2050 24:00:00 GMT',
      'Thu, 18 Aug 2050 02:60:18 GMT',
      'Thu, 18 Aug 2050 02:01:61 GMT',
      'Thu, 18 Aug 2050 02:01:18',
      ...['UTC', 'AEST', '+0000', 'GMT+1', 'Z'].map((zone) => `Thu, 18 Aug 2050 02:01:18 ${zone}`),
      ...['Thu, 31 Apr 2050 02:01:18 GMT', 'Tue, 29 Feb 2050 02:01:18 GMT', 'Thu, 00 Aug 2050 02:01:18 GMT'],
      'Thu, 32 Aug 2050 02:01:18 GMT',
      ...['Sun Nov 6 08:49:37 1994', 'Sun Nov  6 08:49:37 94', 'Sun Nov  6 08:49:37 1994 GMT'],
      'Sunday Nov  6 08:49:37 1994',
      ...[
        ' Sun, 06 Nov 1994 08:49:37 GMT',
        'Sun, 06 Nov 1994 08:49:37 GMT ',
        'Sun, 06 Nov 1994 08:49:37 GMT\n',
      ],
      'Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT',
    ]) {
      assert.equal(parsed(text), undefined, text);
    }
  });
});
