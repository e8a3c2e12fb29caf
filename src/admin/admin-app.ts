/** The operators' application: health for whoever runs the process. */

import type { RequestListener } from 'node:http';
import express from 'express';

/** Whether the gateway can take requests now, and if not, why. */
export type Readiness = () => { readonly ready: boolean; readonly reasons: readonly string[] };

/** `/health/live`: the process runs. `/health/ready`: it can serve; the bank's health is not part of that. */
export function createAdminApp(readiness: Readiness): RequestListener {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.use((_request, response, next) => {
    response.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' });
    next();
  });

  app.get('/health/live', (_request, response) => {
    response.json({ status: 'live' });
  });
  app.get('/health/ready', (_request, response) => {
    const { ready, reasons } = readiness();
    response.status(ready ? 200 : 503).json({ status: ready ? 'ready' : 'not ready', reasons });
  });
  app.use((_request, response) => {
    response.status(404).json({ error: 'There is nothing here; see /health/live and /health/ready.' });
  });
  return app;
}
