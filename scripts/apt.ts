/** Installs a Debian package if this process may: as root, with apt. */

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const aptGet = '/usr/bin/apt-get';

/** Whether this process may install packages. */
export const mayInstall = () => process.getuid?.() === 0 && existsSync(aptGet);

/** Installs a package and prints the reason. The caller checks afterwards whether the program exists. */
export function install(name: string, what: string): void {
  console.log(`The tests need ${what}: installing ${name}.`);
  apt('update') && apt('install', '-y', '--no-install-recommends', name);
}

function apt(...args: readonly string[]): boolean {
  const { status } = spawnSync(aptGet, ['-qq', '-o', 'Acquire::Retries=1', ...args], {
    stdio: 'ignore',
    timeout: 300_000,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  return status === 0;
}
