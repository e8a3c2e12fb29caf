/** Starts a program on the Node of this process. */

import { join } from 'node:path';
import type { Launch } from '../measure/program.ts';

/** @param file relative to `bench/` */
export const runOnNode = (file: string, ...args: readonly (string | number)[]): Launch => ({
  command: [process.execPath, ...nodeOptions(), join(import.meta.dirname, '..', file), ...args.map(String)],
});

/** Additional options of Node for all contenders, such as `--cpu-prof --cpu-prof-dir=profile`. */
const nodeOptions = () => (process.env.BENCH_NODE_OPTIONS ?? '').split(' ').filter((word) => word !== '');
