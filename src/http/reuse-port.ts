/** Checks whether the operating system supports a port that several processes share (SO_REUSEPORT). */

import { readFileSync } from 'node:fs';

const setting = '/proc/sys/net/ipv4/tcp_migrate_req'; // Linux 5.14 and later; applies to IPv6 as well

/**
 * Linux distributes new connections to the processes when they begin. Connections that a process has not accepted yet
 * when it closes its listener are reset, unless this setting hands them to another process.
 *
 * @returns a warning that says what to change; `undefined` if no connection is lost
 * @see https://docs.kernel.org/networking/ip-sysctl.html (tcp_migrate_req)
 */
export function reusePortWarning(file = setting): string | undefined {
  if (isMigrationEnabled(file)) return undefined;
  return (
    'listen.reusePort: the kernel can reset new connections while one of the processes stops; ' +
    'on Linux 5.14 or later, sysctl -w net.ipv4.tcp_migrate_req=1 moves them to another process'
  );
}

function isMigrationEnabled(file: string): boolean {
  try {
    return readFileSync(file, 'utf8').trim() === '1';
  } catch {
    return false;
  }
}
