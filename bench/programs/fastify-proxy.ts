/** A reverse proxy: Fastify with @fastify/http-proxy, used as its documentation shows. Arguments: proxy-arguments.ts */

import { createRequire } from 'node:module';
import { maxSockets, port, tls, upstream } from './proxy-arguments.ts';

interface Server {
  register(plugin: unknown, options: object): void;
  listen(at: { readonly port: number; readonly host: string }): Promise<string>;
}

// Uses `require` instead of `import`, so that the type check works without the packages that only bench/ installs.
const require = createRequire(import.meta.url);
const fastify = require('fastify') as () => Server;

const server = fastify();
server.register(require('@fastify/http-proxy'), {
  upstream,
  undici: { connections: maxSockets, connect: tls },
});
await server.listen({ port, host: '127.0.0.1' });
