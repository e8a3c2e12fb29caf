/** All contenders, by scenario. */

import type { Contender } from './contender.ts';
import { haproxy } from './haproxy.ts';
import { direct, nginxCache, nginxProxy } from './nginx.ts';
import { runOnNode } from './node.ts';
import { penstock, penstockOnFile, penstockOnPostgres } from './penstock.ts';
import { varnish } from './varnish.ts';

/** A proxy of `programs/`. */
const proxy = (name: string, file: string): Contender => ({
  name,
  forwards: true,
  launches: ({ port, upstreamPort, upstreamTls: tls }) => [
    run(file, port, upstreamPort, ...(tls ? [tls.caFile, tls.certFile, tls.keyFile] : [])),
  ],
});

const run = (file: string, ...args: readonly (number | string)[]) => runOnNode(`programs/${file}`, args);

const bareNode: Contender = {
  name: 'bare node:http',
  forwards: false,
  launches: ({ port }) => [run('node-answer.ts', port)],
};

/** Express that responds from memory. */
export const bareExpress: Contender = {
  name: 'bare Express',
  forwards: false,
  launches: ({ port }) => [run('express-answer.ts', port)],
};

const expressRedis: Contender = {
  name: 'Express + ioredis',
  forwards: false,
  launches: ({ port, redisPort }) => [run('express-redis.ts', port, redisPort)],
};

const handWritten = proxy('hand-written proxy', 'hand-written-proxy.ts');

export const expressProxy = proxy('Express + http-proxy-middleware', 'express-proxy.ts');

/** What the usual means cost for the same promise: a payment is sent once. */
const expressPostgres: Contender = {
  name: 'Express + http-proxy-middleware + pg',
  requiredProgram: 'postgres',
  forwards: true,
  launches: ({ port, upstreamPort, postgresUrl }) => [
    run('express-postgres.ts', port, upstreamPort, postgresUrl),
  ],
};

const fastifyProxy = proxy('@fastify/http-proxy', 'fastify-proxy.ts');

/** They also connect to a bank over TLS. */
const tlsProxies: readonly Contender[] = [handWritten, fastifyProxy, expressProxy, penstock];

const proxies: readonly Contender[] = [
  handWritten,
  fastifyProxy,
  proxy('fast-gateway', 'fast-gateway.ts'),
  expressProxy,
  nginxProxy,
  haproxy,
  penstock,
];

/** The contenders of each scenario. */
export const contendersFor = {
  get: [...proxies, bareNode],
  post: [...proxies, expressPostgres, penstockOnFile, penstockOnPostgres],
  'get-tls': tlsProxies,
  'post-tls': [...tlsProxies, penstockOnPostgres],
  cached: [bareNode, bareExpress, varnish, nginxCache, penstock],
  'cached-redis': [expressRedis, penstockOnPostgres],
  latency: [direct, ...proxies],
  'latency-cached': [direct, bareNode, bareExpress, varnish, penstock],
  steady: [handWritten, penstock],
} as const satisfies Record<string, readonly Contender[]>;
