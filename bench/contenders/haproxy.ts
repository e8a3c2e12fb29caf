/** HAProxy with one thread and keep-alive connections. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Contender } from './contender.ts';

export const haproxy: Contender = {
  name: 'HAProxy',
  requiredProgram: 'haproxy',
  forwards: true,
  launches: ({ port, upstreamPort, folder }) => {
    const file = join(folder, 'haproxy.cfg');
    writeFileSync(
      file,
      `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  http-reuse always
listen bench
  bind 127.0.0.1:${port}
  server bank 127.0.0.1:${upstreamPort}
`,
    );
    return [{ command: ['haproxy', '-db', '-f', file] }];
  },
};
