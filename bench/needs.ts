/** What must be there before anything is measured: packages of `bench/`, and programs of the system. */

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Contender } from './contenders/contender.ts';

/** Installs the packages of the contenders, once. */
export function installPackages(): void {
  if (existsSync(join(import.meta.dirname, 'node_modules'))) return;
  console.log('Installing what Penstock is measured beside ...');
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: import.meta.dirname, stdio: 'inherit' });
}

/** Whether a program is on the PATH. */
export const isInstalled = (program: string): boolean =>
  spawnSync('sh', ['-c', 'command -v "$0"', program], { stdio: 'ignore' }).status === 0;

/** Contenders whose program is there. @param told hears which ones are left out */
export function installed(
  contenders: readonly Contender[],
  told: (sentence: string) => void,
): readonly Contender[] {
  return contenders.filter(({ name, needs }) => {
    const there = needs === undefined || isInstalled(needs);
    if (!there) told(`${name} is left out: there is no ${needs} on the PATH.`);
    return there;
  });
}
