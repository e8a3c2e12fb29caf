/** The embedded approach through the gateway: the payer's password and TAN are sent at most once, and a wrong one is an answer. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { payerCredentials } from '../../src/simulated-bank/embedded-sca.ts';
import { call, jsonOf, type Reply } from '../kit/call.ts';
import { startGatewayWithBank } from '../kit/gateway.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { outcomeOf, withUpdates } from '../kit/writes.ts';

/** A payment whose authorisation waits for the TAN. */
async function startPayment(t: TestContext) {
  const { bank, gateway } = await startGatewayWithBank(t, withUpdates);
  const others = initiation.headers.filter(([name]) => !/^TPP-.*-Preferred$/.test(name));
  const headers = [...others, ['TPP-Embedded-Preferred', 'true'] as const];
  const initiated = await call(gateway.url, { ...initiation, headers });
  const path = pathOf(initiated, 'updatePsuAuthentication');
  const send = (data: object, requestId = randomUUID()) => {
    const json = [['Content-Type', 'application/json']] as const;
    return call(gateway.url, { method: 'PUT', path, headers: json, requestId, body: JSON.stringify(data) });
  };
  assert.equal((await send({ psuData: { password: payerCredentials.password } })).status, 200);
  assert.equal((await send({ authenticationMethodId: '901' })).status, 200);
  const status = () =>
    call(gateway.url, { method: 'GET', path: `${transfersPath}/${jsonOf(initiated).paymentId}/status` });
  return { bank, send, status };
}

const pathOf = (reply: Reply, link: string) => {
  const { pathname } = new URL(Object(jsonOf(reply)._links)[link].href);
  return pathname;
};

describe('the TAN of an embedded authorisation', () => {
  test('authorises the payment, and the status that was cached before is not shown again', async (t) => {
    const { send, status } = await startPayment(t);
    assert.equal(jsonOf(await status()).transactionStatus, 'RCVD');
    assert.equal(jsonOf(await send({ scaAuthenticationData: payerCredentials.tan })).scaStatus, 'finalised');
    assert.equal(jsonOf(await status()).transactionStatus, 'ACTC');
  });

  test('that is wrong counts once: a repeat gets the same answer, and only a new X-Request-ID is a new attempt', async (t) => {
    const { bank, send } = await startPayment(t);
    const checks = () => bank.payments[0]?.credentialChecks;
    const wrong = { scaAuthenticationData: '654321' };
    const requestId = randomUUID();
    const first = await send(wrong, requestId);
    const repeats = [await send(wrong, requestId), await send(wrong, requestId)];
    assert.equal(outcomeOf(first), '401');
    for (const repeat of repeats) {
      assert.equal(outcomeOf(repeat), '401 replayed');
      assert.equal(repeat.text, first.text);
    }
    assert.equal(checks(), 2, 'the password, and the first TAN');
    assert.equal(outcomeOf(await send({ scaAuthenticationData: payerCredentials.tan })), '200');
    assert.equal(checks(), 3);
  });

  test('is sent once although a TPP repeats it four times after a lost answer, so that the payer is not locked out', async (t) => {
    const { bank, send } = await startPayment(t);
    const wrong = { scaAuthenticationData: '654321' };
    const requestId = randomUUID();
    bank.injectFault({ name: 'reset', strikes: 'after-effect' }, { times: 1 });
    assert.equal(outcomeOf(await send(wrong, requestId)), '504 OUTCOME_UNKNOWN');
    for (const _ of [1, 2, 3, 4])
      assert.equal(outcomeOf(await send(wrong, requestId)), '409 DUPLICATE_IN_DOUBT');
    assert.equal(bank.payments[0]?.credentialChecks, 2, 'the password, and one TAN');
  });
});
