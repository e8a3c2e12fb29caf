import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { listeningReadIn, waitMsIn } from '../../../src/notifications/listening-request.ts';
import type { HeaderFields } from '../../../src/pis/headers.ts';
import { statusTagOf } from '../../../src/request/status-tag.ts';

const tag = statusTagOf('A'.repeat(22));
const maxWaitMs = 55_000;
const usesCache = { cacheUseOf: () => ({ isBypassed: false, mayWait: true, mayStream: true }) };
const prefer = (...values: readonly string[]): HeaderFields => values.map((value) => ['Prefer', value]);

describe('the preference for waiting', () => {
  test('is found among other preferences, in any line and case, quoted or not', () => {
    const seconds: readonly (readonly [HeaderFields, number])[] = [
      [prefer('wait=10'), 10],
      [prefer('Wait = 10'), 10],
      [prefer('wait="10"'), 10],
      [prefer('respond-async, wait=10; foo=bar'), 10],
      [prefer('return=minimal', 'handling=lenient,wait=10'), 10],
      [prefer('foo="a, wait=5", wait=10'), 10],
      [prefer('wait=10, wait=20'), 10],
      [prefer('wait=0'), 0],
      [[['PREFER', 'wait=99999999999999999999']], 2 ** 31],
    ];
    for (const [headers, expected] of seconds)
      assert.equal(waitMsIn(headers), expected * 1_000, JSON.stringify(headers));
  });

  test('is ignored if it is not a number of seconds', () => {
    for (const value of [
      'wait',
      'wait=',
      'wait=-1',
      'wait=1.5',
      'wait=10s',
      'awaits=10',
      'wait;10',
      '',
      ',',
      '"wait=10',
    ])
      assert.equal(waitMsIn(prefer(value)), 0, value);
    assert.equal(waitMsIn([]), 0);
  });
});

describe('a status read', () => {
  test('waits for at most the configured time, and is passed on without the preference and the tags', () => {
    const accept = ['Accept', 'application/json'] as const;
    const headers = [accept, ['If-None-Match', tag] as const, ...prefer('wait=600, return=minimal')];
    assert.deepEqual(listeningReadIn(headers, maxWaitMs, usesCache), {
      tags: [tag],
      waitMs: maxWaitMs,
      headers: [accept, ['Prefer', 'return=minimal']],
    });
    const alone = listeningReadIn([accept, ...prefer('wait=1')], maxWaitMs, usesCache);
    assert.deepEqual(alone, { tags: undefined, waitMs: 1_000, headers: [accept] });
  });

  test('that may not wait is only conditional, and keeps its preference', () => {
    const cache = { cacheUseOf: () => ({ isBypassed: false, mayWait: false, mayStream: true }) };
    const [preference = assert.fail()] = prefer('wait=10');
    const read = listeningReadIn([['If-None-Match', tag], preference], maxWaitMs, cache);
    assert.deepEqual(read, { tags: [tag], waitMs: 0, headers: [preference] });
    assert.equal(listeningReadIn([preference], maxWaitMs, cache), undefined);
  });

  test('is an ordinary one with other tags, without a wait, or if it bypasses the cache', () => {
    assert.equal(listeningReadIn(prefer('return=minimal'), maxWaitMs, usesCache), undefined);
    assert.equal(listeningReadIn([['If-None-Match', '"1"']], maxWaitMs, usesCache), undefined);
    assert.equal(listeningReadIn(prefer('wait=10'), 0, usesCache), undefined);
    const bypassed = { cacheUseOf: () => ({ isBypassed: true, mayWait: false, mayStream: false }) };
    assert.equal(listeningReadIn([['If-None-Match', tag]], maxWaitMs, bypassed), undefined);
  });
});
