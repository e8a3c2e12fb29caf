/**
 * A network of the benchmark's own (Linux): public and forbidden addresses are on its loopback interface, and the name server of the
 * system is the benchmark's. So the gateways run unchanged, and every connection that they open can be counted.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Not the Internet's: in this network nothing else can be reached. */
export const publicV4 = '11.0.0.1';
export const publicV6 = '2600:1::1';

/** Of the kinds that a webhook must not be sent to. Loopback and the mapped forms need no address of their own. */
export const forbiddenAddresses = [
  ...['10.0.0.1', '172.16.0.1', '192.168.0.1', '169.254.169.254', '100.64.0.1'],
  ...['fd00::1', '64:ff9b::a00:1'],
] as const;

const nameServer = '127.0.0.1';

const setUp = [
  'ip link set lo up',
  ...[publicV4, publicV6, ...forbiddenAddresses].map(
    (address) => `ip addr add ${address}/${address.includes(':') ? 128 : 32} dev lo`,
  ),
  'file=$(mktemp)',
  `echo "nameserver ${nameServer}" > "$file"`,
  'mount --bind "$file" /etc/resolv.conf',
  'rm "$file"',
  'exec "$@"',
].join(' && ');

/** Runs a program in such a network. Only root can start PostgreSQL there, which refuses to run as root itself. @returns its exit code */
export async function runInOwnNetwork(program: string, args: readonly string[]): Promise<number> {
  const users = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
  const own = [...users, '--net', '--mount', 'sh', '-c', setUp, 'sh'];
  const child = spawn('unshare', [...own, program, ...args], { stdio: 'inherit' });
  const [code] = await once(child, 'close');
  return typeof code === 'number' ? code : 1;
}
