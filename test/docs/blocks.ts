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

/** The blocks of a page that are marked `sh`; a block marked `text` directly after one shows its output. */
export function blocksOf(page: string): readonly Block[] {
  const text = readFileSync(join(root, page), 'utf8');
  const found = text.matchAll(/^```sh\n([\s\S]*?)^```(?:\n\n```text\n([\s\S]*?)^```)?/gm);
  return [...found].map(([, commands = '', shown = '']) => ({
    commands,
    shown: shown.split('\n').filter((line) => line !== ''),
  }));
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
