/** Express with http-proxy-middleware as documented, with keep-alive. Arguments: PORT UPSTREAM-PORT */

import { Agent } from 'node:http';
import express from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';

const [port, upstreamPort] = process.argv.slice(2).map(Number);

express()
  .use(
    createProxyMiddleware({
      target: `http://127.0.0.1:${upstreamPort}`,
      agent: new Agent({ keepAlive: true, maxSockets: 256 }),
    }),
  )
  .listen(Number(port), '127.0.0.1');
