/** Attacks on the public API: requests as plain text, and the assertions about their responses. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import type { GatewayUnderTest } from './gateway.ts';
import { onConnection, type RawAnswer, sendRaw } from './raw-connection.ts';
import { transfersPath } from './request.ts';

/** The target of an attack. */
export interface AttackTarget {
  readonly bank: SimulatedBank;
  readonly gateway: GatewayUnderTest;
}

/** A refusal of the gateway: the status and `Penstock-Error`. */
export type Refusal = readonly [status: number, code: string];

export const paymentsPath = transfersPath;

/** The path of a status read that was never made before. */
export const newStatusPath = () => `${paymentsPath}/${randomUUID()}/status`;

/** A request as text; the fields follow `Host` and a new `X-Request-ID`. */
export function requestText(requestLine: string, fields: readonly string[] = [], body = ''): string {
  const head = [requestLine, 'Host: gateway.example', `X-Request-ID: ${randomUUID()}`, ...fields];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

/** A status read of a payment that was never read before. */
export const statusRead = (...fields: readonly string[]) =>
  requestText(`GET ${newStatusPath()} HTTP/1.1`, fields);

/** An initiation with these bytes; the fields say how long they are. */
export function initiation(body: string, ...fields: readonly string[]): string {
  const usual = ['Content-Type: application/json', 'PSU-IP-Address: 192.168.8.78'];
  return requestText(`POST ${paymentsPath} HTTP/1.1`, [...usual, ...fields], body);
}

/** The status and the gateway's own error code, or `none` for a response of the bank. */
export const refusalOf = ({ status, headers }: RawAnswer): Refusal => [
  status,
  headers.get('penstock-error') ?? 'none',
];

/** The gateway refuses these bytes in its own words, and the bank sees nothing of them. */
export async function assertRefused(
  { bank, gateway }: AttackTarget,
  bytes: string,
  refusal: Refusal,
): Promise<void> {
  const before = bank.requests.length;
  const answer = await sendRaw(gateway.port, bytes);
  assert.deepEqual(refusalOf(answer), refusal, excerpt(bytes));
  assert.match(answer.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/, excerpt(bytes));
  assert.equal(bank.requests.length, before, `the bank saw ${excerpt(bytes)}`);
}

/**
 * The gateway refuses these bytes and closes the connection without reading further: a proxy that parses them
 * differently may take the next request for a part of them, or a part of them for a request.
 */
export async function assertCutOff(
  { bank, gateway }: AttackTarget,
  bytes: string,
  refusal: Refusal,
): Promise<void> {
  const before = bank.requests.length;
  await onConnection(gateway.port, async (connection) => {
    connection.send(bytes + statusRead());
    const answer = await connection.answer();
    assert.deepEqual(refusalOf(answer), refusal, excerpt(bytes));
    assert.equal(answer.headers.get('connection'), 'close', excerpt(bytes));
    await connection.closed();
    assert.equal(connection.unread(), '', `something behind ${excerpt(bytes)} was answered`);
  });
  assert.equal(bank.requests.length, before, `the bank saw something of ${excerpt(bytes)}`);
}

/** Another TPP is served as if nothing had happened. */
export async function assertServes({ bank, gateway }: AttackTarget): Promise<void> {
  const before = bank.requests.length;
  const answer = await sendRaw(gateway.port, statusRead());
  assert.equal(answer.headers.get('penstock-error'), undefined);
  assert.equal(bank.requests.length, before + 1);
}

/** The values with which a field reached the bank in its latest request; `name` in lower case. */
export function valuesAtBank({ bank }: AttackTarget, name: string): readonly string[] {
  const flat = bank.requests.at(-1)?.rawHeaders ?? assert.fail('nothing reached the bank');
  return flat.filter((_, index) => index % 2 === 1 && flat[index - 1]?.toLowerCase() === name);
}

const excerpt = (bytes: string) => JSON.stringify(bytes.slice(0, 300));
