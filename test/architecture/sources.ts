/** Every source file with its imports and its length, as the architecture rules need it. */

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

/** The files of the console, which browsers load as they are. */
export const consoleFiles = globSync('admin/console/*', { cwd: root }).map((path) => ({
  path,
  text: readFileSync(join(root, path), 'utf8'),
}));

/** The first folder of a path; a file at the top of `src/` is its own folder. */
export const folderOf = (path: string): string => path.split('/')[0] ?? path;
