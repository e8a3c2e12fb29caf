/** A bank that moves to another address: new connections go there, at the latest after upstream.maxAge. */

import assert from 'node:assert/strict';
import dns from 'node:dns';
import { type TestContext, test } from 'node:test';
import { createSimulatedBank } from '../../src/simulated-bank/server.ts';
import { call } from '../kit/call.ts';
import { startGateway } from '../kit/gateway.ts';
import { newCall, transfersPath } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const host = 'bank-that-moves.localhost'; // http: is allowed on loopback only

async function startBankAt(t: TestContext, address: string, port?: number) {
  const bank = createSimulatedBank();
  await bank.start(port, address);
  t.after(() => bank.stop());
  return bank;
}

test('calls follow the name of the bank to another address, although connections stay busy', {
  skip: process.platform !== 'linux' && 'only Linux has several loopback addresses',
}, async (t) => {
  let address = '127.0.0.1';
  const lookup = dns.lookup;
  t.mock.method(dns, 'lookup', (name: string, options: dns.LookupAllOptions, found: never) =>
    lookup(name === host ? address : name, options, found),
  );
  const before = await startBankAt(t, address);
  const port = Number(new URL(before.baseUrl).port);
  const after = await startBankAt(t, '127.0.0.2', port);
  const gateway = await startGateway(t, {
    environments: { sandbox: { baseUrl: `http://${host}:${port}` } },
    upstream: { maxAge: '1s', idle: '60s' },
    shaping: { rate: '1000/s', burst: 1000 },
  });
  const ask = () => call(gateway.url, newCall('GET', `${transfersPath}/a-payment`));
  await ask();
  assert.equal(before.requests.length, 1);

  address = '127.0.0.2';
  // Each connection to the old address is younger than its maximum age, and is used until then.
  let inARow = 0;
  await until(20_000, 'fifty calls in a row reach the new address', async () => {
    const callsBefore = before.requests.length;
    await ask();
    inARow = before.requests.length === callsBefore ? inARow + 1 : 0;
    return inARow >= 50;
  });
  assert.ok(after.requests.length >= 50);
});
