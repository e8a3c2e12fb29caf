import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { hasTag, isStatusTag, statusTagOf, statusTagsIn } from '../../../src/request/status-tag.ts';

const hash = 'A'.repeat(20);
const one = statusTagOf(`${hash}-1`);
const other = statusTagOf(`${hash}_2`);
const conditions = (...values: readonly string[]) => values.map((value) => ['If-None-Match', value] as const);

describe('the tags of statuses', () => {
  test('are weak, and have a form of their own', () => {
    assert.equal(one, `W/"penstock-${hash}-1"`);
    assert.ok(isStatusTag(one) && isStatusTag(one.slice(2)));
    for (const tag of ['*', '"1"', 'W/"1"', `W/"penstock-${hash}"`, `"penstock-${hash}-1`, `${one} `])
      assert.equal(isStatusTag(tag), false, tag);
  });

  test('are found in all lines of If-None-Match', () => {
    assert.deepEqual(statusTagsIn(conditions(`${one} ,, ${other}`)), [one, other]);
    assert.deepEqual(statusTagsIn(conditions(one, other)), [one, other]);
  });

  test('are not found beside a tag of the bank, or without any tag', () => {
    for (const value of ['*', '"1"', `${one}, "1"`, `"a,b", ${one}`, '', ',', 'W/'])
      assert.equal(statusTagsIn(conditions(value)), undefined, value);
    assert.equal(statusTagsIn(conditions(one, '"1"')), undefined);
    assert.equal(statusTagsIn([]), undefined);
  });

  test('are compared weakly', () => {
    assert.ok(hasTag([['etag', one]], [other, one.slice(2)]));
    assert.equal(hasTag([['ETag', one]], [other]), false);
    assert.equal(hasTag([], [one]), false);
  });
});
