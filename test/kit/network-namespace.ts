/** A network namespace for a test (Linux), in which connections migrate when a listener is closed (ADR 56). */

import { spawn, spawnSync } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { cleanVariables } from './command.ts';
import { within } from './within.ts';

const own = ['--user', '--map-root-user', '--net', 'sh', '-c'];
const setUp = 'ip link set lo up && echo 1 > /proc/sys/net/ipv4/tcp_migrate_req';

/** Why no such network can be had here, or false: `test(name, { skip: withoutOwnNetwork() }, ...)`. */
export function skipWithoutNetworkNamespace(): string | false {
  const { status } = spawnSync('unshare', [...own, setUp], { stdio: 'ignore' });
  if (status === 0) return false;
  return 'no network namespace can be made here (Linux 5.14, unshare, ip); or: sysctl -w net.ipv4.tcp_migrate_req=1';
}

/** Runs a test file in a network namespace. @param postgres the address of its PostgreSQL @returns its exit status and its output */
export async function runInNetworkNamespace(
  file: string,
  postgres: string,
): Promise<{ readonly code: number | null; readonly said: string }> {
  const child = spawn('unshare', [...own, `${setUp} && exec "$0" "$1"`, process.execPath, file], {
    env: { ...cleanVariables(), POSTGRES_URL: postgres, POSTGRES_TEMPLATE: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const said = await within(100_000, 'the tests in a network of their own', text(child.stdout)).finally(() =>
    child.kill('SIGKILL'),
  );
  return { code: await ended, said };
}
