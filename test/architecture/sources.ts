/** The sources as the laws see them: every file, what it imports, how long it is. */

import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

export interface Source {
  /** Path below `src/`, such as `http/listener.ts`. */
  readonly path: string;
  readonly text: string;
  readonly lines: number;
  /** Paths below `src/` that it imports from, types included. */
  readonly ours: readonly string[];
  /** Packages that it imports, such as `express` or `node:http`. */
  readonly packages: readonly string[];
}

const root = join(import.meta.dirname, '../../src');

export const sources: readonly Source[] = globSync('**/*.ts', { cwd: root })
  .toSorted()
  .map((path) => {
    const text = readFileSync(join(root, path), 'utf8');
    const specifiers = Array.from(
      text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g),
      (found) => found[1] ?? '',
    );
    const ours = specifiers.filter((specifier) => specifier.startsWith('.'));
    return {
      path,
      text,
      lines: text.split('\n').length - 1,
      ours: ours.map((specifier) => relative(root, join(root, dirname(path), specifier))),
      packages: specifiers.filter((specifier) => !specifier.startsWith('.')),
    };
  });

/** What browsers are given, which is no TypeScript. */
export const consoleFiles = globSync('admin/console/*', { cwd: root }).map((path) => ({
  path,
  text: readFileSync(join(root, path), 'utf8'),
}));

/** The room a file stands in: its first folder, or its own name at the top. */
export const roomOf = (path: string): string => path.split('/')[0] ?? path;
