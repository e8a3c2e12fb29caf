/** Installs the packages of `bench/` and checks which programs are on the PATH. */

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { postgresPrograms } from '../test/kit/find-postgres.ts';
import type { Contender } from './contenders/contender.ts';

/** Installs the packages of the contenders, once. */
export function installPackages(): void {
  if (existsSync(join(import.meta.dirname, 'node_modules'))) return;
  console.log('Installing the packages of the contenders ...');
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: import.meta.dirname, stdio: 'inherit' });
}

/** Whether a program is on the PATH; PostgreSQL is found elsewhere, too. */
export const isInstalled = (program: string): boolean =>
  (program === 'postgres' && postgresPrograms() !== undefined) ||
  spawnSync('sh', ['-c', 'command -v "$0"', program], { stdio: 'ignore' }).status === 0;

/** Contenders whose program is installed. @param onSkipped called with the reason for each skipped one */
export function installedContenders(
  contenders: readonly Contender[],
  onSkipped: (sentence: string) => void,
): readonly Contender[] {
  return contenders.filter(({ name, requiredProgram }) => {
    const isAvailable = requiredProgram === undefined || isInstalled(requiredProgram);
    if (!isAvailable) onSkipped(`${name} is skipped: ${requiredProgram} is not installed.`);
    return isAvailable;
  });
}
