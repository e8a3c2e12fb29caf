/** Links in the documents lead to something that is there. */

import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';
import { root } from '../kit/command.ts';

const pages = [...globSync('*.md', { cwd: root }), ...globSync('{docs,test}/**/*.md', { cwd: root })];

/** As GitHub makes them of headings. */
const anchorsIn = (text: string): readonly string[] =>
  [...text.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );

test('every link in a document leads to an existing file and heading', () => {
  const broken = pages.flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
    const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
    return targets
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => {
        const [path = '', anchor] = target.split('#');
        const file = path === '' ? page : relative(root, join(root, dirname(page), path));
        if (!existsSync(join(root, file))) return true;
        return anchor !== undefined && !anchorsIn(readFileSync(join(root, file), 'utf8')).includes(anchor);
      })
      .map((target) => `${page}: ${target}`);
  });
  assert.ok(pages.length > 50);
  assert.deepEqual(broken, []);
});
