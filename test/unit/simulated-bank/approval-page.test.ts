/** The page where a person approves or rejects a payment: who may use it, and what it does to the payment. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { BankOptions } from '../../../src/simulated-bank/bank.ts';
import { ask, initiation, jsonOrder, pathOf, pay, startedBank } from './kit.ts';

const back = { 'TPP-Redirect-URI': 'https://tpp.example/ok?a=1&b=2', 'TPP-Nok-Redirect-URI': 'javascript:1' };
const form = (decision: string, headers: Readonly<Record<string, string>> = {}) => ({
  headers: {
    'Content-Type': 'application/x-www-form-urlencoded',
    'Content-Length': String(`decision=${decision}`.length),
    ...headers,
  },
  body: `decision=${decision}`,
});

async function startPayment(t: TestContext, headers = {}, options: BankOptions = {}) {
  const bank = await startedBank(t, { approvalPage: true, ...options });
  const paid = await pay(bank, headers);
  const page = new URL(paid.json._links.scaRedirect.href);
  const status = async () => (await ask(bank, 'GET', `${pathOf(paid.json.paymentId)}/status`)).json;
  return { bank, paid, page, status };
}

test('the person who opens the page decides, and the payer that approves by itself no longer does', async (t) => {
  const { bank, paid, page, status } = await startPayment(t, back);
  assert.equal(page.origin, new URL(bank.baseUrl).origin);
  const shown = await ask(bank, 'GET', page.pathname);
  assert.equal(shown.status, 200);
  assert.match(shown.text, /123\.50 EUR/);
  assert.match(String(shown.headers['content-security-policy']), /default-src 'none'; style-src 'sha256-/);
  bank.clock.advance(60_000);
  assert.equal((await status()).transactionStatus, 'RCVD');

  const approved = await ask(bank, 'POST', page.pathname, form('approve'));
  assert.equal(approved.status, 200);
  assert.match(approved.text, /You have approved this payment/);
  assert.match(approved.text, /href="https:\/\/tpp\.example\/ok\?a=1&amp;b=2"/);
  assert.equal((await status()).transactionStatus, 'ACTC');
  assert.equal(bank.payments.find(({ paymentId }) => paymentId === paid.json.paymentId)?.transactionStatus, 'ACTC'); // biome-ignore format: one fact

  assert.equal((await ask(bank, 'POST', page.pathname, form('reject'))).status, 409);
  assert.equal((await ask(bank, 'GET', page.pathname)).status, 410);
  bank.clock.advance(60_000);
  assert.equal((await status()).transactionStatus, 'ACCC');
});

test('a rejected payment has the status RJCT, and a link back only to a web page', async (t) => {
  const { bank, paid, page, status } = await startPayment(t, back);
  const rejected = await ask(bank, 'POST', page.pathname, form('reject'));
  assert.match(rejected.text, /You have rejected this payment/);
  assert.doesNotMatch(rejected.text, /javascript:|href=/);
  assert.equal((await status()).transactionStatus, 'RJCT');
  const sca = new URL(paid.json._links.scaStatus.href).pathname;
  assert.equal((await ask(bank, 'GET', sca)).json.scaStatus, 'failed');
});

test('the page shows orders whose fields are not texts, and records what the payer decides', async (t) => {
  for (const field of [{ toString: 1 }, [{ toString: 1 }], null, true, 5]) {
    const bank = await startedBank(t, { approvalPage: true });
    const order = { ...JSON.parse(jsonOrder), creditorName: field, remittanceInformationUnstructured: field };
    const accounts = { debtorAccount: { iban: field }, creditorAccount: { iban: field } };
    const body = JSON.stringify({
      ...order,
      ...accounts,
      instructedAmount: { amount: field, currency: field },
    });
    const paid = await ask(bank, 'POST', `${bank.path}/payments/sepa-credit-transfers`, {
      headers: initiation,
      body,
    });
    assert.equal(paid.status, 201, paid.text);
    const { pathname } = new URL(paid.json._links.scaRedirect.href);
    const shown = await ask(bank, 'GET', pathname);
    assert.equal(shown.status, 200, shown.text);
    assert.match(
      shown.text,
      field === 5 ? /<dt>Debtor<\/dt><dd>5<\/dd>/ : /<dd>\(not a text: see the whole order\)<\/dd>/,
    );
    assert.equal((await ask(bank, 'POST', pathname, form('approve'))).status, 200);
  }
});

test('only GET opens the page: after HEAD, the payer still approves by itself', async (t) => {
  const { bank, page, status } = await startPayment(t);
  const head = await ask(bank, 'HEAD', page.pathname);
  assert.deepEqual([head.status, head.text], [200, '']);
  bank.clock.advance(6_000);
  assert.equal((await status()).transactionStatus, 'ACTC');
});

test('a payer that approves by itself ends the authorisation for the page', async (t) => {
  const { bank, page } = await startPayment(t);
  bank.clock.advance(6_000);
  assert.equal((await ask(bank, 'GET', page.pathname)).status, 410);
  assert.equal((await ask(bank, 'POST', page.pathname, form('reject'))).status, 409);
});

test('the page refuses other hosts, other web sites, unknown payments and malformed decisions', async (t) => {
  const { bank, page, status } = await startPayment(t);
  const path = page.pathname;
  const post = async (headers: Readonly<Record<string, string>>, decision = 'approve') =>
    (await ask(bank, 'POST', path, form(decision, headers))).status;
  assert.equal(
    (await ask(bank, 'GET', path, { headers: { Host: `evil.example:${page.port}` } })).status,
    403,
  );
  assert.equal(await post({ Host: 'evil.example', Origin: 'http://evil.example' }), 403);
  assert.equal(await post({ Origin: 'https://evil.example' }), 403);
  assert.equal(await post({ Origin: 'null' }), 403);
  assert.equal(await post({ 'Sec-Fetch-Site': 'cross-site' }), 403);
  assert.equal(await post({ 'Sec-Fetch-Site': 'same-site' }), 403);
  assert.equal(await post({}, 'maybe'), 400);
  assert.equal(await post({}, 'approve&decision=reject'), 400);
  assert.equal(await post({}, 'x'.repeat(2_000)), 413);
  assert.equal((await ask(bank, 'DELETE', path)).headers.allow, 'GET, HEAD, POST');
  assert.equal((await ask(bank, 'GET', '/_bank/approve/none/none')).status, 404);
  assert.equal((await ask(bank, 'GET', `${path}%E0%A4%A`)).status, 404);
  assert.equal((await status()).transactionStatus, 'RCVD');
  assert.equal(await post({ Origin: page.origin, 'Sec-Fetch-Site': 'same-origin' }), 200);
});

test('without the option, and with a link of its profile, a bank keeps its own scaRedirect', async (t) => {
  const { page } = await startPayment(
    t,
    {},
    { profile: { links: { scaRedirect: 'https://bank.example/' } } },
  );
  assert.equal(page.href, 'https://bank.example/');
  const plain = await startedBank(t);
  assert.equal((await ask(plain, 'GET', '/_bank/approve/a/b')).headers['content-type'], 'application/json');
});
