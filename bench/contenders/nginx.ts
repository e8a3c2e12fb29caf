/** nginx with one worker: as the bank, as a proxy, and as a cache. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Launch } from '../measure/program.ts';
import { cachedBody, initiationResponse, locationOf } from '../traffic.ts';
import type { Contender, ContenderEnvironment, TlsFiles } from './contender.ts';

/**
 * A bank that responds immediately: 600 bytes to every GET, a new payment to every POST.
 *
 * @param tls with these files, it uses TLS and requires a client certificate of the same authority
 */
export const nginxBank = (
  { port, folder }: Pick<ContenderEnvironment, 'port' | 'folder'>,
  tls?: TlsFiles,
): Launch =>
  nginx(
    folder,
    `server {
      listen 127.0.0.1:${port} backlog=4096${tls ? ' ssl' : ''};
      ${tls ? requireCertificate(tls) : ''}
      default_type application/json;
      location / {
        if ($request_method = POST) {
          add_header Location ${locationOf('$request_id')};
          add_header ASPSP-SCA-Approach REDIRECT;
          return 201 '${initiationResponse('$request_id')}';
        }
        return 200 '${cachedBody}';
      }
    }`,
  );

const requireCertificate = ({ caFile, certFile, keyFile }: TlsFiles) =>
  `ssl_certificate ${certFile}; ssl_certificate_key ${keyFile};
      ssl_client_certificate ${caFile}; ssl_verify_client on;`;

/** The bank without a gateway. */
export const direct: Contender = {
  name: 'no gateway',
  requiredProgram: 'nginx',
  forwards: true,
  launches: (surroundings) => [nginxBank(surroundings)],
};

/** Forwards over keep-alive connections. */
export const nginxProxy: Contender = {
  name: 'nginx',
  requiredProgram: 'nginx',
  forwards: true,
  launches: ({ port, upstreamPort, folder }) => [nginx(folder, server(port, '') + upstream(upstreamPort))],
};

/** Serves from cache files, which the operating system keeps in memory. */
export const nginxCache: Contender = {
  name: 'nginx proxy_cache',
  requiredProgram: 'nginx',
  forwards: true,
  launches: ({ port, upstreamPort, folder }) => {
    const zone = `proxy_cache_path ${join(folder, 'cache')} keys_zone=answers:8m;`;
    const caching = 'proxy_cache answers; proxy_cache_valid 200 1h;';
    return [nginx(folder, zone + server(port, caching) + upstream(upstreamPort))];
  },
};

const upstream = (port: number) => `upstream bank {
  server 127.0.0.1:${port};
  keepalive 256; keepalive_requests 100000000;
}`;

const server = (port: number, more: string) => `server {
  listen 127.0.0.1:${port} backlog=4096;
  location / {
    proxy_pass http://bank; proxy_http_version 1.1; proxy_set_header Connection "";
    ${more}
  }
}`;

function nginx(folder: string, http: string): Launch {
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const file = join(folder, 'nginx.conf');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `${kind}_temp_path ${join(folder, kind)};`)
    .join('');
  writeFileSync(
    file,
    `${user} worker_processes 1; daemon off; pid ${join(folder, 'nginx.pid')};
    events { worker_connections 8192; multi_accept on; }
    http {
      access_log off; keepalive_requests 100000000; keepalive_timeout 120s; ${temporary}
      ${http}
    }`,
  );
  return { command: ['nginx', '-e', 'stderr', '-p', folder, '-c', file] };
}
