/** Reads the commands in the documents, and the output that the documents show for them. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../kit/command.ts';

/** A block of commands, and what is shown below it. */
export interface Block {
  /** One or more lines of shell. */
  readonly commands: string;
  /** Lines that are to come out, in this order; `…` stands for anything. */
  readonly shown: readonly string[];
}

/**
 * The blocks of a page that are marked `sh`; a block marked `text` directly after one shows its output.
 *
 * @param section its title, for the blocks of this section alone
 */
export function blocksOf(page: string, section?: string): readonly Block[] {
  const found = textOf(page, section).matchAll(
    /^( *)```sh\n([\s\S]*?)^\1```(?:\n\n```text\n([\s\S]*?)^```)?/gm,
  );
  return [...found].map(([, indent = '', commands = '', shown = '']) => ({
    commands: commands.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    shown: shown.split('\n').filter((line) => line !== ''),
  }));
}

/** The text of a page, or of one of its sections. */
export function textOf(page: string, section?: string): string {
  const text = readFileSync(join(root, page), 'utf8');
  if (section === undefined) return text;
  const found = text.split(/^## /m).find((part) => part.startsWith(`${section}\n`));
  if (found === undefined) throw new Error(`${page} has no section "${section}"`);
  return found;
}

/** The first shown line that did not come out behind the ones before it, or `undefined`. */
export function missingIn(output: string, shown: readonly string[]): string | undefined {
  let from = 0;
  return shown.find((line) => {
    const found = patternOf(line).exec(output.slice(from));
    from += found ? found.index + found[0].length : 0;
    return !found;
  });
}

const patternOf = (line: string) => new RegExp(line.split('…').map(escaped).join('[^\\n]*?'));
const escaped = (text: string) => text.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&');
