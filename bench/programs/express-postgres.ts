/**
 * A payment proxy that never pays twice, built by the usual means: Express, http-proxy-middleware, a pool of `pg` as its documentation
 * recommends, and a table of X-Request-IDs with three statements for each payment. Arguments: PORT UPSTREAM-PORT POSTGRES-URL
 */

import express, { type Request } from 'express';
import { createProxyMiddleware, responseInterceptor } from 'http-proxy-middleware';
import { Pool } from 'pg';
import { createAgent, port, upstream } from './proxy-arguments.ts';

const pool = new Pool({ connectionString: process.argv[4] });
pool.on('error', (error) => console.error(error.message));
await pool.query(`CREATE TABLE IF NOT EXISTS idempotency (
  request_id text PRIMARY KEY, step text NOT NULL, status integer, headers text, body bytea, created_at timestamptz NOT NULL DEFAULT now())`);

const requestIdOf = (request: Pick<Request, 'headers'>) =>
  String(request.headers['x-request-id']).toLowerCase();

const record = responseInterceptor(async (body, { statusCode, headers }, request) => {
  await pool.query(
    `UPDATE idempotency SET step = 'answered', status = $2, headers = $3, body = $4 WHERE request_id = $1`,
    [requestIdOf(request), statusCode, JSON.stringify(headers), body],
  );
  return body;
});

const proxy = { target: upstream, agent: createAgent() };
const forward = createProxyMiddleware(proxy);
const forwardAndRecord = createProxyMiddleware<Request>({
  ...proxy,
  selfHandleResponse: true,
  on: { proxyRes: record },
});

express()
  .use(async (request, response, next) => {
    if (request.method !== 'POST') return forward(request, response, next);
    const id = requestIdOf(request);
    const claim = `INSERT INTO idempotency (request_id, step) VALUES ($1, 'claimed') ON CONFLICT DO NOTHING`;
    const { rowCount } = await pool.query(claim, [id]);
    if (rowCount === 1) {
      await pool.query(`UPDATE idempotency SET step = 'sending' WHERE request_id = $1`, [id]);
      return forwardAndRecord(request, response, next);
    }
    const { rows } = await pool.query('SELECT step, status, body FROM idempotency WHERE request_id = $1', [
      id,
    ]);
    if (rows[0]?.step === 'answered') return response.status(rows[0].status).type('json').send(rows[0].body);
    response.status(409).json({ tppMessages: [{ category: 'ERROR', code: 'STATUS_INVALID' }] });
  })
  .listen(port, '127.0.0.1');
