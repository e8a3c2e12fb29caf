/** Express with http-proxy-middleware as documented, with keep-alive. Arguments: proxy-arguments.ts */

import express from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { createAgent, port, upstream } from './proxy-arguments.ts';

express()
  .use(createProxyMiddleware({ target: upstream, agent: createAgent() }))
  .listen(port, '127.0.0.1');
