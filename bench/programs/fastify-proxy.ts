/** A reverse proxy: Fastify with @fastify/http-proxy, used as its documentation shows. Arguments: PORT UPSTREAM-PORT */

import { createRequire } from 'node:module';

interface Server {
  register(plugin: unknown, options: object): void;
  listen(at: { readonly port: number; readonly host: string }): Promise<string>;
}

// Uses `require` instead of `import`, so that the type check works without the packages that only bench/ installs.
const require = createRequire(import.meta.url);
const fastify = require('fastify') as () => Server;

const [port, upstreamPort] = process.argv.slice(2).map(Number);
const server = fastify();
const upstream = `http://127.0.0.1:${upstreamPort}`;
server.register(require('@fastify/http-proxy'), { upstream, undici: { connections: 256 } });
await server.listen({ port: Number(port), host: '127.0.0.1' });
