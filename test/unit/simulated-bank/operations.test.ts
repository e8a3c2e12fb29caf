/** The eight operations as a TPP sees them. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  ask,
  initiation,
  jsonOrder,
  multipartOrder,
  pathOf,
  pay,
  requestId,
  startedBank,
  xmlOrder,
} from './kit.ts';

describe('initiating a payment at the simulated bank', () => {
  test('responds 201 to JSON with id, status, resource link and a link for the payer', async (t) => {
    const bank = await startedBank(t, { name: 'sandbox' });

    const answer = await pay(bank);

    const { paymentId } = answer.json;
    assert.equal(answer.status, 201);
    assert.match(paymentId, /^sandbox-/);
    assert.equal(answer.json.transactionStatus, 'RCVD');
    assert.equal(answer.headers.location, `${bank.baseUrl}${pathOf(paymentId)}`);
    assert.equal(answer.headers['aspsp-sca-approach'], 'REDIRECT');
    assert.equal(answer.json._links.self.href, `${bank.baseUrl}${pathOf(paymentId)}`);
    assert.equal(answer.json._links.status.href, `${bank.baseUrl}${pathOf(paymentId)}/status`);
    assert.match(answer.json._links.scaStatus.href, /\/authorisations\/sca-/);
    assert.equal(new URL(answer.json._links.scaRedirect.href).origin, 'https://sca.sandbox.example');
  });

  test('responds in JSON to pain.001 and returns the document byte for byte', async (t) => {
    const bank = await startedBank(t);
    const path = '/berlingroup/v1/payments/pain.001-sepa-credit-transfers';

    const created = await ask(bank, 'POST', path, { headers: initiation, body: xmlOrder });
    const read = await ask(bank, 'GET', `${path}/${created.json.paymentId}`);

    assert.equal(created.status, 201);
    assert.equal(read.headers['content-type'], 'application/xml');
    assert.equal(read.text, xmlOrder);
  });

  test('responds in JSON to a multipart standing order and returns it byte for byte', async (t) => {
    const bank = await startedBank(t);
    const path = '/berlingroup/v1/periodic-payments/pain.001-sepa-credit-transfers';
    const headers = { ...initiation, 'Content-Type': 'multipart/form-data; boundary=AaaBbbCcc' };

    const created = await ask(bank, 'POST', path, { headers, body: multipartOrder });
    const read = await ask(bank, 'GET', `${path}/${created.json.paymentId}`);

    assert.equal(created.status, 201);
    assert.equal(read.headers['content-type'], 'multipart/form-data; boundary=AaaBbbCcc');
    assert.equal(read.text, multipartOrder);
  });

  test('starts no authorisation if the TPP prefers an explicit start', async (t) => {
    const bank = await startedBank(t);

    const { json } = await pay(bank, { 'TPP-Explicit-Authorisation-Preferred': 'true' });
    const list = await ask(bank, 'GET', `${pathOf(json.paymentId)}/authorisations`);

    assert.match(json._links.startAuthorisation.href, /\/authorisations$/);
    assert.deepEqual(list.json, { authorisationIds: [] });
  });

  test('creates two payments for one repeated X-Request-ID, because the bank detects no duplicates', async (t) => {
    const bank = await startedBank(t);

    await pay(bank);
    await pay(bank);

    assert.deepEqual(
      bank.payments.map((payment) => payment.requestId),
      [requestId, requestId],
    );
  });

  test('uses the payment id that a test sets', async (t) => {
    const bank = await startedBank(t);
    bank.nextPaymentId('GJv0KO..Fg==_=_bS6p6XvTWI');

    const { json } = await pay(bank);
    const read = await ask(bank, 'GET', pathOf(encodeURIComponent(json.paymentId)));

    assert.equal(json.paymentId, 'GJv0KO..Fg==_=_bS6p6XvTWI');
    assert.equal(read.status, 200);
  });
});

describe('reading a payment at the simulated bank', () => {
  test('returns the body of a JSON initiation with its status', async (t) => {
    const bank = await startedBank(t);
    const { json } = await pay(bank);

    const read = await ask(bank, 'GET', pathOf(json.paymentId));

    assert.deepEqual(read.json, { ...JSON.parse(jsonOrder), transactionStatus: 'RCVD' });
  });

  test('returns the status of an XML product as pain.002, or as JSON if requested', async (t) => {
    const bank = await startedBank(t);
    const path = '/berlingroup/v1/payments/pain.001-sepa-credit-transfers';
    const { json } = await ask(bank, 'POST', path, { headers: initiation, body: xmlOrder });
    const status = `${path}/${json.paymentId}/status`;

    const xml = await ask(bank, 'GET', status, { headers: { Accept: 'application/xml' } });
    const asked = await ask(bank, 'GET', status, { headers: { Accept: 'application/json' } });

    assert.equal(xml.headers['content-type'], 'application/xml');
    assert.match(xml.text, /<GrpSts>RCVD<\/GrpSts>/);
    assert.deepEqual(asked.json, { transactionStatus: 'RCVD' });
  });

  test('returns the X-Request-ID of the request in every response', async (t) => {
    const bank = await startedBank(t);
    const other = '00000000-0000-4000-8000-000000000001';

    const { json } = await pay(bank);
    const read = await ask(bank, 'GET', pathOf(json.paymentId), { headers: { 'X-Request-ID': other } });
    const unknown = await ask(bank, 'GET', pathOf('nobody'), { headers: { 'X-Request-ID': other } });

    assert.equal(read.headers['x-request-id'], other);
    assert.equal(unknown.headers['x-request-id'], other);
  });
});

describe('cancelling a payment at the simulated bank', () => {
  test('cancels an unauthorised payment immediately', async (t) => {
    const bank = await startedBank(t);
    const { json } = await pay(bank);

    const cancelled = await ask(bank, 'DELETE', pathOf(json.paymentId));

    assert.equal(cancelled.status, 204);
    assert.equal(cancelled.body.length, 0);
    assert.equal(bank.payments[0]?.transactionStatus, 'CANC');
  });

  test('requires an authorisation to cancel an authorised payment', async (t) => {
    const bank = await startedBank(t);
    const { json } = await pay(bank);
    bank.clock.advance(5_000);

    const asked = await ask(bank, 'DELETE', pathOf(json.paymentId));
    const path = new URL(asked.json._links.startAuthorisation.href).pathname;
    const started = await ask(bank, 'POST', path, { body: '{}' });
    const before = await ask(bank, 'GET', `${pathOf(json.paymentId)}/status`);
    bank.clock.advance(5_000);
    const after = await ask(bank, 'GET', `${pathOf(json.paymentId)}/status`);
    const sca = await ask(bank, 'GET', `${path}/${started.json.authorisationId}`);

    assert.equal(asked.status, 202);
    assert.equal(asked.json.transactionStatus, 'ACTC');
    assert.equal(started.status, 201);
    assert.equal(before.json.transactionStatus, 'ACTC');
    assert.equal(after.json.transactionStatus, 'CANC');
    assert.equal(sca.json.scaStatus, 'finalised');
  });

  test('refuses to cancel a settled payment', async (t) => {
    const bank = await startedBank(t);
    const { json } = await pay(bank);
    bank.clock.advance(20_000);

    const refused = await ask(bank, 'DELETE', pathOf(json.paymentId));

    assert.equal(refused.status, 405);
    assert.equal(refused.json.tppMessages[0].code, 'CANCELLATION_INVALID');
  });

  test('refuses a cancellation authorisation before a cancellation was requested', async (t) => {
    const bank = await startedBank(t);
    const { json } = await pay(bank);

    const refused = await ask(bank, 'POST', `${pathOf(json.paymentId)}/cancellation-authorisations`);

    assert.equal(refused.status, 409);
    assert.equal(refused.json.tppMessages[0].code, 'STATUS_INVALID');
  });
});

describe('authorising a payment at the simulated bank', () => {
  test("redirects the payer to the bank's web site", async (t) => {
    const bank = await startedBank(t);
    const { json } = await pay(bank);

    const started = await ask(bank, 'POST', `${pathOf(json.paymentId)}/authorisations`);

    assert.equal(started.status, 201);
    assert.equal(started.headers['aspsp-sca-approach'], 'REDIRECT');
    assert.match(started.json._links.scaRedirect.href, /^https:\/\/sca\.bank\.example\//);
  });

  test('sends no redirect link for a decoupled authorisation', async (t) => {
    const bank = await startedBank(t);
    const headers = { 'TPP-Decoupled-Preferred': 'true' };
    const { json } = await pay(bank, headers);

    const started = await ask(bank, 'POST', `${pathOf(json.paymentId)}/authorisations`, {
      headers,
      body: '{}',
    });

    assert.equal(started.headers['aspsp-sca-approach'], 'DECOUPLED');
    assert.deepEqual(Object.keys(started.json._links), ['scaStatus']);
    assert.match(started.json.psuMessage, /BankApp/);
  });

  test('lists an authorisation, advances its status, and refuses a new one after the payment is authorised', async (t) => {
    const bank = await startedBank(t);
    const { json } = await pay(bank);
    const list = `${pathOf(json.paymentId)}/authorisations`;
    const { authorisationIds } = (await ask(bank, 'GET', list)).json;
    const scaStatus = async () => (await ask(bank, 'GET', `${list}/${authorisationIds[0]}`)).json.scaStatus;

    const first = await scaStatus();
    bank.clock.advance(3_000);
    const second = await scaStatus();
    bank.clock.advance(2_000);
    const third = await scaStatus();
    const again = await ask(bank, 'POST', list);

    assert.deepEqual([first, second, third], ['received', 'psuAuthenticated', 'finalised']);
    assert.equal(again.status, 409);
  });
});
