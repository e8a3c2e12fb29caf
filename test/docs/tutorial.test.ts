/** docs/operations/tutorial.md, played word by word. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocksOf, missingIn } from './blocks.ts';
import { copyOfRepository } from './demo.ts';

/** Marks in the output where the next block begins. */
const mark = (number: number) => `--- block ${number} ---`;

test('the commands of the tutorial work and print the output that it shows', async (t) => {
  const [first, ...rest] = blocksOf('docs/operations/tutorial.md');
  assert.ok(first && rest.length > 5);
  const [install, ...start] = first.commands.split('\n');
  assert.equal(install, 'npm ci'); // it was done before the tests
  const blocks = [{ ...first, commands: start.join('\n') }, ...rest];

  const copy = await copyOfRepository(t);
  const marked = blocks.map(({ commands }, number) => `echo; echo '${mark(number)}'\n${commands}`).join('\n');
  const { said, code } = await copy.run(copy.here(marked));
  assert.equal(code, 0, said);
  const output = copy.asWritten(said);
  for (const [number, { commands, shown }] of blocks.entries()) {
    const own = output.slice(output.indexOf(mark(number)), output.indexOf(mark(number + 1)));
    assert.equal(missingIn(own, shown), undefined, `not said by:\n${commands}\nwhich said:\n${own}`);
  }
});
