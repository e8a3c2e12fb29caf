/** The complete life cycle of payments of every service and format, through the gateway and directly at the bank. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { type Differential, startDifferential } from '../kit/differential.ts';
import { exampleOf } from '../kit/examples.ts';

/** Service, product, and the example of its initiation. */
const products = [
  ['payments', 'sepa-credit-transfers', 'initiate-payment-json'],
  ['payments', 'pain.001-sepa-credit-transfers', 'initiate-payment-pain001'],
  ['bulk-payments', 'sepa-credit-transfers', 'initiate-payment-json'],
  ['bulk-payments', 'pain.001-sepa-credit-transfers', 'initiate-payment-pain001'],
  ['periodic-payments', 'sepa-credit-transfers', 'initiate-periodic-payment-json'],
  ['periodic-payments', 'pain.001-sepa-credit-transfers', 'initiate-periodic-payment-multipart'],
] as const;

const explicitly = ['TPP-Explicit-Authorisation-Preferred', 'true'] as const;
const firstOf = (bank: SimulatedBank) => bank.payments[0];

for (const standardVersion of ['1.3.6', '1.3.11']) {
  describe(`a gateway in front of a bank with version ${standardVersion}`, () => {
    for (const [service, product, order] of products) {
      const path = `/berlingroup/v1/${service}/${product}`;

      test(`passes every operation and response of /${service}/${product} unchanged (${order})`, async (t) => {
        const differential = await startDifferential(t, {}, standardVersion);
        await initiate(differential, path, order, 'payment-1');
        await read(differential, service, `${path}/payment-1`);
        await authorise(
          differential,
          `${path}/payment-1/authorisations`,
          (bank) => firstOf(bank)?.authorisationIds,
        );
        differential.clock.advance(5_000);
        await cancelWithAuthorisation(differential, `${path}/payment-1`);

        await initiate(differential, path, order, 'payment-2');
        await cancelAtOnce(differential, `${path}/payment-2`);

        assert.equal(
          new Set(differential.bank.requests.map(({ operation }) => operation)).size,
          service === 'bulk-payments' ? 6 : 7,
        );
      });
    }
  });
}

async function initiate(differential: Differential, path: string, order: string, id: string): Promise<void> {
  for (const bank of [differential.bank, differential.directBank]) bank.nextPaymentId(id);
  const { body = '', headers } = exampleOf(order);
  const sent = headers.filter(([name]) => !['X-Request-ID', explicitly[0]].includes(name));
  const answer = await differential.send({
    method: 'POST',
    path: () => path,
    body,
    headers: [...sent, explicitly],
  });
  assert.equal(answer.status, 201);
}

async function read(differential: Differential, service: string, payment: string): Promise<void> {
  if (service !== 'bulk-payments') {
    assert.equal((await differential.send({ method: 'GET', path: () => payment })).status, 200);
  }
  for (const format of ['application/json', 'application/xml']) {
    const headers = [['Accept', format]] as const;
    const status = await differential.send({ method: 'GET', path: () => `${payment}/status`, headers });
    assert.equal(status.status, 200);
    assert.equal(status.header('Content-Type'), format);
  }
}

async function authorise(
  differential: Differential,
  path: string,
  idsAt: (bank: SimulatedBank) => readonly string[] | undefined,
): Promise<void> {
  const headers = [['Content-Type', 'application/json']] as const;
  const started = await differential.send({ method: 'POST', path: () => path, headers, body: '{}' });
  assert.equal(started.status, 201);
  assert.equal((await differential.send({ method: 'GET', path: () => path })).status, 200);
  const one = await differential.send({ method: 'GET', path: (bank) => `${path}/${idsAt(bank)?.[0]}` });
  assert.equal(one.status, 200);
}

async function cancelWithAuthorisation(differential: Differential, payment: string): Promise<void> {
  const asked = await differential.send({ method: 'DELETE', path: () => payment });
  assert.equal(asked.status, 202);
  await authorise(
    differential,
    `${payment}/cancellation-authorisations`,
    (bank) => firstOf(bank)?.cancellationAuthorisationIds,
  );
}

async function cancelAtOnce(differential: Differential, payment: string): Promise<void> {
  const { status, body, fields } = await differential.send({ method: 'DELETE', path: () => payment });
  assert.equal(status, 204);
  assert.equal(body.length, 0);
  assert.ok(!fields.some(([name]) => /^(content-length|transfer-encoding)$/i.test(name)));
}
