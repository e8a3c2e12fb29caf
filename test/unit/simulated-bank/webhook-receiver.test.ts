import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { parseWebhookSecrets } from '../../../src/config/webhook-secrets.ts';
import { signWebhook } from '../../../src/notifications/webhook-signature.ts';
import { createWebhookReceiver } from '../../../src/simulated-bank/webhook-receiver.ts';

const body = JSON.stringify({ paymentId: 'payment-1', transactionStatus: 'ACSC' });
const now = () => Math.floor(Date.now() / 1_000);

async function start(t: TestContext) {
  const reports: string[] = [];
  const receiver = createWebhookReceiver({
    onWebhook: ({ id }) => reports.push(id),
    onRefused: () => reports.push('refused'),
  });
  const url = await receiver.start(0);
  t.after(receiver.stop);
  const send = async (id: string, { secret = receiver.secret, timestamp = now(), sent = body } = {}) => {
    const signature = signWebhook(parseWebhookSecrets(secret), id, timestamp, Buffer.from(body));
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': signature,
    };
    return (await fetch(url, { method: 'POST', headers, body: sent })).status;
  };
  return { receiver, url, reports, send };
}

describe("the demo's receiver of webhooks", () => {
  test('reports a webhook of the gateway once, and gives it to those who wait for one about its payment', async (t) => {
    const { receiver, reports, send } = await start(t);
    const awaited = receiver.webhookFor('payment-1');
    assert.equal(await send('message-1'), 204);
    assert.equal(await send('message-1'), 204, 'a repeat');
    assert.deepEqual(await awaited, { id: 'message-1', paymentId: 'payment-1', body });
    assert.equal((await receiver.webhookFor('payment-1')).id, 'message-1');
    assert.deepEqual(reports, ['message-1']);
    await assert.rejects(receiver.webhookFor('payment-2', 1), /no webhook about payment-2 within 1 ms/);
  });

  test('refuses what is not signed with its secret, is changed, is old, or is too long', async (t) => {
    const { url, reports, send } = await start(t);
    const other = createWebhookReceiver();
    assert.equal(await send('message-1', { secret: other.secret }), 401);
    assert.equal(await send('message-1', { sent: body.replace('ACSC', 'RJCT') }), 401);
    assert.equal(await send('message-1', { timestamp: now() - 600 }), 401);
    assert.equal((await fetch(url, { method: 'POST', body })).status, 401);
    assert.equal(await send('message-1', { sent: ' '.repeat(20_000) }), 401);
    assert.deepEqual(new Set(reports), new Set(['refused']));
  });
});
