/** Checks a server's response before and after a measurement. */

import { initiation } from '../traffic.ts';
import type { BenchRequest } from './load.ts';

/** Sends one request. @returns the body. @throws Error if the status differs */
export async function requestOnce(
  port: number,
  { method, path, headers, body }: BenchRequest,
  status: number,
): Promise<string> {
  const ownHeaders = method === 'POST' ? { 'X-Request-ID': crypto.randomUUID() } : {};
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { ...headers, ...ownHeaders },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  if (response.status !== status) throw new Error(`${method} ${path} returned ${response.status}: ${text}`);
  return text;
}

/** Initiates a payment, so that Penstock records the environment of the payment. @returns the payment id */
export async function initiatePayment(port: number, request: BenchRequest = initiation): Promise<string> {
  const { paymentId } = JSON.parse(await requestOnce(port, request, 201));
  return String(paymentId);
}
