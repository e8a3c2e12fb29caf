/** The embedded approach: the payer's password, method and TAN arrive in PUTs on the authorisation. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { payerCredentials } from '../../../src/simulated-bank/embedded-sca.ts';
import { ask, pathOf, pay, startedBank } from './kit.ts';

const password = { psuData: { password: payerCredentials.password } };
const method = { authenticationMethodId: '901' };
const tan = { scaAuthenticationData: payerCredentials.tan };

/** A payment whose authorisation has the embedded approach. */
async function startEmbedded(t: TestContext) {
  const bank = await startedBank(t);
  const { json } = await pay(bank, { 'TPP-Embedded-Preferred': 'true' });
  const path = new URL(json._links.updatePsuAuthentication.href).pathname;
  const send = async (data: object) => {
    const answer = await ask(bank, 'PUT', path, { body: JSON.stringify(data) });
    const { scaStatus, tppMessages, _links = {} } = answer.json;
    return [answer.status, scaStatus ?? tppMessages[0].code, ...Object.keys(_links)];
  };
  const status = () => bank.payments[0]?.transactionStatus;
  return { bank, path, send, status, paymentId: json.paymentId };
}

describe('an embedded authorisation of the simulated bank', () => {
  test('leads with password, method and TAN to the execution of the payment, and not by time', async (t) => {
    const { bank, send, status } = await startEmbedded(t);
    bank.clock.advance(10_000);
    assert.deepEqual(await send(password), [
      200,
      'psuAuthenticated',
      'selectAuthenticationMethod',
      'scaStatus',
    ]);
    assert.deepEqual(await send(method), [200, 'scaMethodSelected', 'authoriseTransaction', 'scaStatus']);
    assert.equal(status(), 'RCVD');
    assert.deepEqual(await send(tan), [200, 'finalised', 'scaStatus']);
    assert.equal(status(), 'ACTC');
    assert.equal(bank.payments[0]?.credentialChecks, 2);
  });

  test('refuses a wrong TAN, and is blocked after three wrong attempts, also for the right one', async (t) => {
    const { bank, path, send, status } = await startEmbedded(t);
    await send(password);
    await send(method);
    for (const attempt of [1, 2, 3]) {
      const answer = await send({ scaAuthenticationData: '654321' });
      assert.deepEqual(answer, [401, 'PSU_CREDENTIALS_INVALID'], `attempt ${attempt}`);
    }
    assert.deepEqual(await send(tan), [401, 'PSU_CREDENTIALS_INVALID']);
    assert.equal((await ask(bank, 'GET', path)).json.scaStatus, 'failed');
    assert.equal(status(), 'RCVD');
  });

  test('takes the right TAN after two wrong attempts', async (t) => {
    const { send } = await startEmbedded(t);
    await send({ psuData: { password: 'wrong' } });
    await send(password);
    await send(method);
    await send({ scaAuthenticationData: 123456 });
    assert.deepEqual(await send(tan), [200, 'finalised', 'scaStatus']);
  });

  test('refuses steps in another order, a repeated TAN, an unknown method and other data', async (t) => {
    const { send } = await startEmbedded(t);
    assert.deepEqual(await send(tan), [409, 'STATUS_INVALID']);
    assert.deepEqual(await send({}), [400, 'FORMAT_ERROR']);
    await send(password);
    assert.deepEqual(await send({ authenticationMethodId: '1' }), [400, 'SCA_METHOD_UNKNOWN']);
    await send(method);
    await send(tan);
    assert.deepEqual(await send(tan), [409, 'STATUS_INVALID']);
  });

  test('begins with the password if that comes with its start, and cancels a payment', async (t) => {
    const { bank, send, paymentId, status } = await startEmbedded(t);
    for (const step of [password, method, tan]) await send(step);
    await ask(bank, 'DELETE', pathOf(paymentId));
    const started = await ask(bank, 'POST', `${pathOf(paymentId)}/cancellation-authorisations`, {
      headers: { 'TPP-Embedded-Preferred': 'true' },
      body: JSON.stringify(password),
    });
    assert.equal(started.json.scaStatus, 'psuAuthenticated');
    const { pathname } = new URL(started.json._links.selectAuthenticationMethod.href);
    for (const step of [method, tan]) await ask(bank, 'PUT', pathname, { body: JSON.stringify(step) });
    assert.equal(status(), 'CANC');
  });

  test('is none if the payer authorises at the bank', async (t) => {
    const bank = await startedBank(t);
    const { json } = await pay(bank);
    const { pathname } = new URL(json._links.scaStatus.href);
    const answer = await ask(bank, 'PUT', pathname, { body: JSON.stringify(password) });
    assert.equal(answer.json.tppMessages[0].code, 'STATUS_INVALID');
  });
});

describe('a PUT on a payment', () => {
  test('starts the authorisation at a bank whose profile says so', async (t) => {
    const profile = { sca: { startLink: 'updatePsuIdentification' } };
    const bank = await startedBank(t, { profile });
    const { json } = await pay(bank);
    const { pathname } = new URL(json._links.updatePsuIdentification.href);
    const answer = await ask(bank, 'PUT', pathname, { body: '{}' });
    assert.equal(answer.status, 200);
    assert.deepEqual(Object.keys(answer.json._links), ['scaRedirect', 'scaStatus']);
    assert.equal(bank.payments[0]?.authorisationIds.length, 1);
  });

  test('is refused at other banks', async (t) => {
    const bank = await startedBank(t);
    const { json } = await pay(bank);
    const answer = await ask(bank, 'PUT', pathOf(json.paymentId), { body: '{}' });
    assert.equal(answer.status, 405);
  });
});
