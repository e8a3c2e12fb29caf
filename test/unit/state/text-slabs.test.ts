import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createTextSlabs, type TextHandle } from '../../../src/state/text-slabs.ts';
import { seededRuns } from '../../kit/seeded-runs.ts';

describe('texts outside of the heap', () => {
  test('are read as they were added, whatever their length', () => {
    const slabs = createTextSlabs();
    const added = new Map<TextHandle, string>();
    for (let length = 128; length <= 16_384; length = Math.ceil(length * 1.1)) {
      const text = `${length} ü 💶 `.padEnd(length, 'x').slice(0, length - 4);
      const handle = slabs.add(text);
      if (length > 200) assert.ok(handle !== undefined, `${length} characters`);
      if (handle !== undefined) added.set(handle, text);
    }
    for (const [handle, text] of added) assert.equal(slabs.read(handle), text);
  });

  test('fill several slabs', () => {
    const slabs = createTextSlabs();
    const texts = Array.from({ length: 1_000 }, (_, index) => `${index} `.padEnd(2_000, 'x'));
    const handles = texts.map((text) => slabs.add(text) ?? assert.fail());
    assert.deepEqual(handles.map(slabs.read), texts);
    assert.equal(new Set(handles).size, 1_000);
  });

  test('have no chunk if they are very short or very long', () => {
    const slabs = createTextSlabs();
    assert.equal(slabs.add('short'), undefined);
    assert.equal(slabs.add('x'.repeat(16_385)), undefined);
    assert.equal(slabs.add('ü'.repeat(8_193)), undefined);
    const longest = slabs.add('ü'.repeat(8_192));
    assert.equal(longest !== undefined && slabs.read(longest), 'ü'.repeat(8_192));
  });

  test('have U+FFFD in place of lone surrogates', () => {
    const slabs = createTextSlabs();
    const handle = slabs.add(`${'x'.repeat(200)}\ud800`);
    assert.equal(handle !== undefined && slabs.read(handle), `${'x'.repeat(200)}\ufffd`);
  });

  test('leave their chunk to another text when they are removed', () => {
    const slabs = createTextSlabs();
    const first = slabs.add('a'.repeat(500)) ?? assert.fail();
    slabs.remove(first);
    assert.equal(slabs.add('b'.repeat(500)), first);
    assert.equal(slabs.read(first), 'b'.repeat(500));
  });

  test('keep their content while others are added and removed', (t) => {
    const step = fc.record({ length: fc.integer({ min: 100, max: 20_000 }), removed: fc.nat() });
    const property = fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const slabs = createTextSlabs();
      const stored: { readonly handle: TextHandle; readonly text: string }[] = [];
      steps.forEach(({ length, removed }, index) => {
        const text = String(index).padEnd(length, String.fromCharCode(97 + (index % 26)));
        const handle = slabs.add(text);
        if (handle !== undefined) stored.push({ handle, text });
        if (removed % 3 > 0) return;
        const [former] = stored.splice(removed % Math.max(1, stored.length), 1);
        if (former) slabs.remove(former.handle);
      });
      for (const { handle, text } of stored) assert.equal(slabs.read(handle), text);
    });
    fc.assert(property, seededRuns(t, 50));
  });
});
