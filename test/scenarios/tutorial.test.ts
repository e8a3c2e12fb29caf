/** docs/operations/tutorial.md, played word by word. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { blocksOf, missingIn } from '../docs/blocks.ts';
import { copyOfRepository } from '../docs/demo.ts';

/** Marks in the output where the next block begins. */
const mark = (number: number) => `--- block ${number} ---`;

test('the commands of the tutorial work and print the output that it shows', async (t) => {
  const blocks = installedBlocks();
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

test('the tutorial does not wait for a demo that has ended, because another one uses the ports', async (t) => {
  const copy = await copyOfRepository(t);
  const other = createServer().listen(Number(copy.here('8080')), '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const { said } = await copy.run(copy.here(installedBlocks()[0].commands));
  assert.match(copy.asWritten(said), /the demo needs the ports 8080, 9090, 9101, 9102, 9103/);
});

/** Without the installation, which was done before the tests. */
function installedBlocks() {
  const [first, ...rest] = blocksOf('docs/operations/tutorial.md');
  assert.ok(first && rest.length > 5);
  const [install, ...start] = first.commands.split('\n');
  assert.equal(install, 'npm ci');
  return [{ ...first, commands: start.join('\n') }, ...rest] as const;
}
