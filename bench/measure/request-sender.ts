/** Sends single requests over keep-alive connections. */

import { randomUUID } from 'node:crypto';
import { Agent, request as startRequest } from 'node:http';
import type { BenchRequest } from './load.ts';

export interface RequestSender {
  /**
   * Sends one request; a POST has a new X-Request-ID.
   *
   * @returns milliseconds until the complete response
   * @throws Error if the status is not the expected one
   */
  send(request: BenchRequest, status: number): Promise<number>;
  close(): void;
}

const timeoutMs = 10_000;

/** @param connections requests beyond this number wait */
export function createRequestSender(port: number, connections = 1): RequestSender {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  return {
    send: ({ method, path, headers, body }, status) =>
      new Promise((resolve, reject) => {
        const startedAtMs = performance.now();
        const own = method === 'POST' ? { 'X-Request-ID': randomUUID() } : {};
        const options = { host: '127.0.0.1', port, agent, method, path, headers: { ...headers, ...own } };
        const call = startRequest({ ...options, timeout: timeoutMs });
        call.on('timeout', () => call.destroy(new Error(`no response within ${timeoutMs} ms`)));
        call.on('error', reject).on('response', (response) => {
          if (response.statusCode !== status)
            reject(
              new Error(
                `${method} ${path} returned ${response.statusCode} ${response.headers['penstock-error'] ?? ''}`,
              ),
            );
          response.on('error', reject).resume();
          response.on('end', () => resolve(performance.now() - startedAtMs));
        });
        call.end(body);
      }),
    close: () => agent.destroy(),
  };
}
