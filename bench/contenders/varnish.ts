/** Varnish with its cache in memory. */

import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Contender } from './contender.ts';

export const varnish: Contender = {
  name: 'Varnish',
  requiredProgram: 'varnishd',
  forwards: true,
  launches: ({ port, upstreamPort, folder }) => {
    const file = join(folder, 'bench.vcl');
    chmodSync(folder, 0o755); // varnishd reads the file as another user
    writeFileSync(
      file,
      `vcl 4.1;
backend bank { .host = "127.0.0.1"; .port = "${upstreamPort}"; }
sub vcl_backend_response { set beresp.ttl = 1h; }
`,
    );
    const work = join(folder, 'varnish');
    return [
      { command: ['varnishd', '-F', '-a', `127.0.0.1:${port}`, '-f', file, '-n', work, '-s', 'malloc,64m'] },
    ];
  },
};
