/** The notifications of the simulated bank. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { BankOptions } from '../../../src/simulated-bank/bank.ts';
import { createAuthority } from '../../kit/openssl.ts';
import { startWebhookReceiver } from '../../kit/webhook-receiver.ts';
import { until } from '../../kit/within.ts';
import { ask, pathOf, pay, startedBank } from './kit.ts';

async function setUp(t: TestContext, options: BankOptions = {}) {
  const bank = await startedBank(t, options);
  bank.notifiesTpps = true;
  const receiver = await startWebhookReceiver(t);
  const uri = { 'TPP-Notification-URI': `http://127.0.0.1:${receiver.port}/payment` };
  const prefer = (names: string) => ({ ...uri, 'TPP-Notification-Content-Preferred': `status=${names}` });
  const bodies = () => receiver.received.map(({ body }) => JSON.parse(body));
  const untilReceived = (count: number) =>
    until(
      5_000,
      () => `${count} notifications; there are ${JSON.stringify(bodies())}`,
      () => receiver.received.length === count,
    );
  return { bank, receiver, uri, prefer, bodies, untilReceived };
}

const explicitly = { 'TPP-Explicit-Authorisation-Preferred': 'true' };
const supportOf = ({ headers }: Awaited<ReturnType<typeof pay>>) => [
  headers['aspsp-notification-support'],
  headers['aspsp-notification-content'],
];

describe('the simulated bank', () => {
  test('notifies nobody, and says nothing about it, unless it is switched on', async (t) => {
    const { bank, receiver, uri } = await setUp(t);
    bank.notifiesTpps = false;
    const reply = await pay(bank, uri);
    assert.deepEqual(supportOf(reply), [undefined, undefined]);
    bank.setStatus(reply.json.paymentId, 'ACSC');
    assert.equal((await ask(bank, 'GET', '/_bank/notifications')).json.enabled, false);

    const body = JSON.stringify({ enabled: true });
    assert.equal((await ask(bank, 'PUT', '/_bank/notifications', { body })).json.enabled, true);
    assert.deepEqual(supportOf(await pay(bank)), [undefined, undefined]);
    assert.deepEqual(supportOf(await pay(bank, uri)), ['true', 'status=PROCESS']);
    assert.equal(receiver.received.length, 0);
  });

  test('sends every change of the status, in order', async (t) => {
    const { bank, receiver, prefer, bodies, untilReceived } = await setUp(t);
    const reply = await pay(bank, { ...prefer('PROCESS'), ...explicitly });
    assert.deepEqual(supportOf(reply), ['true', 'status=PROCESS']);
    const { paymentId } = reply.json;
    for (const status of ['ACTC', 'ACSP', 'ACCC']) bank.setStatus(paymentId, status);

    await untilReceived(3);
    assert.deepEqual(
      bodies(),
      ['ACTC', 'ACSP', 'ACCC'].map((transactionStatus) => ({ paymentId, transactionStatus })),
    );
    const [first] = receiver.received;
    assert.deepEqual([first?.method, first?.path], ['POST', '/payment']);
    assert.match(String(first?.headers['x-request-id']), /^[0-9a-f-]{36}$/);
  });

  test('sends the last status only, if that is preferred', async (t) => {
    const { bank, prefer, bodies, untilReceived } = await setUp(t);
    const { paymentId } = (await pay(bank, { ...prefer('LAST'), ...explicitly })).json;
    for (const status of ['ACTC', 'RJCT']) bank.setStatus(paymentId, status);
    await untilReceived(1);
    assert.deepEqual(bodies(), [{ paymentId, transactionStatus: 'RJCT' }]);
  });

  test('sends the changes of an authorisation, as time brings them', async (t) => {
    const { bank, prefer, bodies, untilReceived } = await setUp(t);
    const { paymentId } = (await pay(bank, explicitly)).json;
    const started = await ask(bank, 'POST', `${pathOf(paymentId)}/authorisations`, {
      headers: { 'Content-Type': 'application/json', ...prefer('SCA') },
      body: '{}',
    });
    assert.deepEqual(supportOf(started), ['true', 'status=SCA']);
    const { authorisationId } = started.json;
    bank.clock.advance(3_000);
    await untilReceived(1);
    bank.clock.advance(3_000);
    await untilReceived(2);
    assert.deepEqual(
      bodies(),
      ['psuAuthenticated', 'finalised'].map((scaStatus) => ({ paymentId, authorisationId, scaStatus })),
    );
  });

  test('sends a notification again, a limited number of times, until it is accepted', async (t) => {
    const { bank, receiver, prefer, untilReceived } = await setUp(t);
    receiver.answerWith((response, _, number) => response.writeHead(number === 1 ? 503 : 200).end());
    const { paymentId } = (await pay(bank, prefer('PROCESS'))).json;
    bank.setStatus(paymentId, 'ACSC');
    await untilReceived(2);
    const [first, second] = receiver.received;
    assert.equal(first?.headers['x-request-id'], second?.headers['x-request-id']);
    await until(5_000, 'both attempts are listed', () => bank.notifications.length === 2);
    assert.deepEqual(
      bank.notifications.map(({ status }) => status),
      [503, 200],
    );
  });

  test('declines a URI that it cannot use', async (t) => {
    const { bank } = await setUp(t);
    for (const uri of ['nonsense', 'ftp://tpp.example/payment'])
      assert.deepEqual(supportOf(await pay(bank, { 'TPP-Notification-URI': uri })), ['false', undefined]);
  });

  test('verifies the certificate of an https URI', async (t) => {
    const authority = createAuthority(t);
    const certificate = authority.issue('tpp', { extensions: 'subjectAltName = IP:127.0.0.1' });
    const receiver = await startWebhookReceiver(t, certificate);
    const uri = { 'TPP-Notification-URI': `https://127.0.0.1:${receiver.port}/payment` };
    for (const [notificationAuthority, expected] of [
      [authority.cert, 200],
      [createAuthority(t, 'other').cert, undefined],
    ] as const) {
      receiver.answerWith((response) => response.writeHead(200).end());
      const bank = await startedBank(t, { notificationAuthority });
      bank.notifiesTpps = true;
      bank.setStatus((await pay(bank, uri)).json.paymentId, 'ACSC');
      await until(5_000, 'an attempt', () => bank.notifications.length > 0);
      assert.equal(bank.notifications[0]?.status, expected);
    }
    assert.equal(receiver.received.length, 1);
  });
});
