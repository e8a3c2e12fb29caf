/** Starts a program on the Node of this process. */

import { join } from 'node:path';
import type { Launch } from '../measure/program.ts';

/** @param file relative to `bench/` @param ownOptions options of Node for this program */
export const runOnNode = (
  file: string,
  args: readonly (string | number)[],
  ownOptions: readonly string[] = [],
): Launch => ({
  command: [
    process.execPath,
    ...commonOptions(),
    ...ownOptions,
    join(import.meta.dirname, '..', file),
    ...args.map(String),
  ],
});

/** Additional options of Node for all contenders, such as `--cpu-prof --cpu-prof-dir=profile`. */
const commonOptions = () => (process.env.BENCH_NODE_OPTIONS ?? '').split(' ').filter((word) => word !== '');
