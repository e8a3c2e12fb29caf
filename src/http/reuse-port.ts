/** What a port that several processes share asks of the system. */

import { readFileSync } from 'node:fs';

const setting = '/proc/sys/net/ipv4/tcp_migrate_req'; // Linux 5.14 and later; IPv6 goes by it, too

/**
 * What gets lost when one of the processes stops, in a sentence that says what to change; `undefined` if nothing does.
 *
 * Linux deals new connections out to the processes when they begin. Those that a process has not taken yet when it
 * closes its listener are reset, unless this setting hands them to another one.
 *
 * @see https://docs.kernel.org/networking/ip-sysctl.html (tcp_migrate_req)
 */
export function reusePortWarning(file = setting): string | undefined {
  if (migrates(file)) return undefined;
  return (
    'listen.reusePort: connections that begin in the moment in which one of the processes stops are reset; ' +
    'on Linux 5.14 and later, sysctl -w net.ipv4.tcp_migrate_req=1 hands them to another one'
  );
}

function migrates(file: string): boolean {
  try {
    return readFileSync(file, 'utf8').trim() === '1';
  } catch {
    return false;
  }
}
