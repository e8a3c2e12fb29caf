/** A TPP system: one call on a connection of its own, and what it sees of the answer. */

import { randomUUID } from 'node:crypto';
import { type IncomingHttpHeaders, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { transfers } from './request.ts';

export const paymentsPath = transfers;

/** After the examples of The Berlin Group, NextGenPSD2 XS2A OpenAPI 1.3.11, CC BY 4.0. */
export const order = JSON.stringify({
  instructedAmount: { currency: 'EUR', amount: '123.50' },
  debtorAccount: { iban: 'DE40100100103307118608' },
  creditorName: 'Merchant123',
  creditorAccount: { iban: 'DE02100100109307118603' },
});

export type Method = 'GET' | 'POST' | 'DELETE';

export interface Call {
  readonly method: Method;
  readonly path: string;
  readonly requestId: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A complete call with a new X-Request-ID; a POST carries the order. */
export function callOf(method: Method, path: string): Call {
  const requestId = randomUUID();
  const headers = { 'X-Request-ID': requestId, 'PSU-IP-Address': '192.168.8.78' };
  if (method !== 'POST') return { method, path, requestId, headers, body: '' };
  return {
    method,
    path,
    requestId,
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: order,
  };
}

/**
 * Sends a call.
 *
 * @param signal hangs up when it is aborted; the promise then rejects
 */
export function send(
  origin: string,
  { method, path, headers, body }: Call,
  signal?: AbortSignal,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = request(origin + path, { method, headers, agent: false, ...(signal && { signal }) });
    sent.on('error', reject).on('response', (response) => {
      text(response).then(
        (whole) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: whole }),
        reject,
      );
    });
    sent.end(body);
  });
}
