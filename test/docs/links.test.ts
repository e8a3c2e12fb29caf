/** Links in the documents lead to something that is there. */

import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { test } from 'node:test';
import { alertTable } from '../../src/alerts/alert-table.ts';
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

/** Whether there is the file and the heading that a page links to. */
function exists(target: string, page: string): boolean {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : relative(root, join(root, dirname(page), path));
  if (!existsSync(join(root, file))) return false;
  return anchor === undefined || anchorsIn(readFileSync(join(root, file), 'utf8')).includes(anchor);
}

test('every link in a document leads to an existing file and heading', () => {
  const broken = pages.flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
    const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
    return targets
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => !exists(target, page))
      .map((target) => `${page}: ${target}`);
  });
  assert.ok(pages.length > 50);
  assert.deepEqual(broken, []);
});

test('every alert links to an existing page and heading of this repository', () => {
  const { homepage } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const alerts = readFileSync(join(root, 'deploy/prometheus/alerts.yaml'), 'utf8');
  const urls = [...alerts.matchAll(/^ +runbook_url: (\S+)$/gm)].map(([, url = '']) => url);
  const pagesUrl = homepage.replace('#readme', '/blob/main/');
  assert.equal(urls.length, alerts.match(/^ +- alert: /gm)?.length);
  for (const url of urls) {
    assert.ok(url.startsWith(pagesUrl), url);
    assert.ok(exists(url.slice(pagesUrl.length), 'README.md'), url);
  }
});

test('every link of the console and of the alerts leads to an existing page and heading', () => {
  const source = readFileSync(join(root, 'src/admin/console/docs-links.js'), 'utf8');
  const ofConsole = [...source.matchAll(/`\$\{handbook\}\/(\S+)`/g)].map(([, target = '']) => target);
  assert.ok(ofConsole.length > 2);
  const targets = [...ofConsole, ...Object.values(alertTable).map(({ guide }) => guide)];
  for (const target of targets) assert.ok(exists(`docs/operations/${target}`, 'README.md'), target);
});
