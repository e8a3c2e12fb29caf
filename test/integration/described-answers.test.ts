/** Answers of the public listener that are easily forgotten: docs/tpp-openapi.yaml has their status, headers and content. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parse } from 'yaml';
import { type Call, call, type Reply } from '../kit/call.ts';
import { root } from '../kit/command.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { lookUpPatiently, selfService } from '../kit/look-up.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { within } from '../kit/within.ts';

const { paths, components } = parse(readFileSync(join(root, 'docs/tpp-openapi.yaml'), 'utf8'));

/** Of HTTP, and those that the gateway takes over from the bank or adds for security. */
const ofEveryAnswer = /^(connection|content-length|content-type|date|keep-alive|transfer-encoding|vary)$/;

/** Fails if the description lacks something of the answer. */
function assertDescribed(operationId: string, { status, fields }: Pick<Reply, 'status' | 'fields'>): void {
  const operation = Object.values<object>(paths)
    .flatMap((path) => Object.values(path))
    .find((one) => one.operationId === operationId);
  const found = operation.responses[status] ?? operation.responses[`${String(status)[0]}XX`];
  assert.ok(found, `${operationId} has ${status}`);
  const response = found.$ref ? components.responses[found.$ref.split('/').at(-1)] : found;
  const described = Object.keys(response.headers).map((name) => name.toLowerCase());
  const sent = fields.map(([name]) => name.toLowerCase());
  assert.deepEqual(
    sent.filter((name) => !described.includes(name) && !ofEveryAnswer.test(name)),
    [],
    `${operationId} ${status}`,
  );
  const type = fields.find(([name]) => name.toLowerCase() === 'content-type')?.[1].split(';')[0];
  if (type !== undefined) assert.ok(type in (response.content ?? {}), `${operationId} ${status} has ${type}`);
}

async function startPaid(t: TestContext) {
  const { gateway, bank } = await startGatewayWithBank(t, selfService);
  const requestId = randomUUID();
  const paid = await call(gateway.url, { ...initiation, requestId });
  assertDescribed('initiatePayment', paid);
  const payment = `${transfersPath}/${JSON.parse(paid.text).paymentId}`;
  return { gateway, bank, requestId, payment, ask: (one: Call) => call(gateway.url, one) };
}

test('look-ups, with and without a request that is found, and refusals of their heads', async (t) => {
  const { gateway, requestId } = await startPaid(t);
  assertDescribed('lookUpRequest', await lookUpPatiently(gateway, undefined, requestId));
  const refused = async (headers: NonNullable<Call['headers']>) => {
    const reply = await call(gateway.url, { method: 'GET', path: `/requests/${requestId}`, headers });
    assertDescribed('lookUpRequest', reply);
    return reply.status;
  };
  assert.equal(await refused([['Expect', 'nothing-known']]), 417);
  assert.equal(await refused([['X-Long', 'a'.repeat(20_000)]]), 431);
});

test('redirects and errors of the bank for reads, and streams', async (t) => {
  const { gateway, bank, payment, ask } = await startPaid(t);
  const body = '{"where":"elsewhere"}';
  const headers = { 'Content-Type': 'application/json', Location: 'https://bank.example/elsewhere' };
  for (const status of [302, 503, 404]) {
    bank.clearFaults();
    bank.injectFault({ name: 'status', status, headers, body });
    for (const [name, path] of [
      ['getPayment', payment],
      ['getPaymentStatus', `${payment}/status`],
    ] as const) {
      const reply = await ask({ method: 'GET', path });
      assert.equal(reply.status, status, reply.text);
      const fields = reply.fields.filter(([field]) => status === 302 || field !== 'Location');
      assertDescribed(name, { status, fields });
    }
  }

  bank.clearFaults();
  const stream = await within(
    20_000,
    'the head of the stream',
    fetch(`${gateway.url}${payment}/status`, {
      headers: { Accept: 'text/event-stream', 'X-Request-ID': randomUUID() },
    }),
  );
  assert.equal(stream.headers.get('X-Accel-Buffering'), 'no');
  assertDescribed('getPaymentStatus', { status: stream.status, fields: [...stream.headers] });
  await stream.body?.cancel();
});
