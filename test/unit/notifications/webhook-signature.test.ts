import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { verifyWebhook } from '../../../examples/callers/verify-webhook.ts';
import { parseWebhookSecrets } from '../../../src/config/webhook-secrets.ts';
import { signWebhook } from '../../../src/notifications/webhook-signature.ts';
import { root } from '../../kit/command.ts';
import { onPath } from '../../kit/on-path.ts';

const newSecret = (bytes = 32) => `whsec_${randomBytes(bytes).toString('base64')}`;

/** @returns the message, or the text of the error */
function verifyInPython(headers: object, body: Buffer, secret: string): unknown {
  const program = `
import json, sys
from verify_webhook import verify_webhook
headers, body, secret = json.load(sys.stdin)
try:
    print(json.dumps(verify_webhook(headers, body.encode(), secret)))
except ValueError as error:
    print(json.dumps(str(error)))`;
  const input = JSON.stringify([headers, body.toString(), secret]);
  const cwd = join(root, 'examples/callers');
  return JSON.parse(execFileSync('python3', ['-B', '-c', program], { cwd, input, encoding: 'utf8' }));
}

function sign(file: string, body: string) {
  const [id, timestamp] = [randomUUID(), Math.floor(Date.now() / 1_000)];
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signWebhook(parseWebhookSecrets(file), id, timestamp, Buffer.from(body)),
  };
}

describe('the signature of a webhook', () => {
  const body = JSON.stringify({ paymentId: 'ä€', transactionStatus: 'ACSC' });

  for (const bytes of [24, 32, 64])
    test(`is accepted by the library of Standard Webhooks, with a secret of ${bytes} bytes`, () => {
      const secret = newSecret(bytes);
      assert.deepEqual(new Webhook(secret).verify(body, sign(secret, body)), JSON.parse(body));
    });

  test('is accepted with each of two secrets, and with no other one', () => {
    const [current, previous] = [newSecret(), newSecret()];
    const headers = sign(`# since today\n${current}\n\n${previous}\n`, body);
    assert.match(headers['webhook-signature'], /^v1,\S{44} v1,\S{44}$/);
    for (const secret of [current, previous]) assert.ok(new Webhook(secret).verify(body, headers));
    assert.throws(() => new Webhook(newSecret()).verify(body, headers));
  });

  test('covers id, timestamp and body', () => {
    const secret = newSecret();
    const headers = sign(secret, body);
    const later = String(Number(headers['webhook-timestamp']) + 1);
    const webhook = new Webhook(secret);
    assert.throws(() => webhook.verify(`${body} `, headers));
    assert.throws(() => webhook.verify(body, { ...headers, 'webhook-id': randomUUID() }));
    assert.throws(() => webhook.verify(body, { ...headers, 'webhook-timestamp': later }));
  });

  test('equals the example of the specification', () => {
    const secrets = parseWebhookSecrets('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
    const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
    const signature = signWebhook(secrets, id, 1_614_265_330, Buffer.from('{"test": 2432232314}'));
    assert.equal(signature, 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
  });
});

describe('the file of webhook secrets', () => {
  const secret = newSecret();
  for (const [content, problem] of [
    ['', 'contains no secret'],
    ['# nothing', 'contains no secret'],
    ['secret', 'line 1 is not a secret'],
    [`${secret}\nwhsec_`, 'line 2 is not a secret'],
    [secret.replace('whsec_', ''), 'line 1 is not a secret'],
    [newSecret(23), 'line 1 is not a secret'],
    [newSecret(65), 'line 1 is not a secret'],
    [`${secret}\n${secret}`, 'contains the same secret twice'],
    [[secret, newSecret(), newSecret()].join('\n'), 'contains more than two secrets'],
  ] as const)
    test(`is refused if it ${problem}: ${content.length} characters`, () => {
      assert.throws(
        () => parseWebhookSecrets(content),
        (error: Error) => error.message.startsWith(problem) && !error.message.includes(secret.slice(6)),
      );
    });
});

describe('the examples for callers that verify webhooks', () => {
  const secret = newSecret();
  const body = Buffer.from('{"paymentId":"1"}');

  test('decide the same in Python, which refuses what the other one refuses', {
    skip: onPath('python3') === undefined && 'python3 is not installed',
  }, () => {
    const previous = newSecret();
    const headers = sign(`${secret}\n${previous}`, body.toString());
    const old = { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 301) };
    const changed = Buffer.from('{"paymentId":"2"}');
    const [wrong, tooOld] = ['the signature of the webhook is wrong', 'the webhook is too old'];
    const tooDeep = 'the message is nested too deeply';
    const nested = '['.repeat(100_000);
    for (const [what, expected, headersGiven, bodyGiven, secretGiven] of [
      ['the secret', { paymentId: '1' }, headers, body, secret],
      ['the other secret', { paymentId: '1' }, headers, body, previous],
      ['an unknown secret', wrong, headers, body, newSecret()],
      ['a changed message', wrong, headers, changed, secret],
      ['another id', wrong, { ...headers, 'webhook-id': randomUUID() }, body, secret],
      ['an old message', tooOld, old, body, secret],
      ['no signature', wrong, { ...headers, 'webhook-signature': '' }, body, secret],
      ['no header', tooOld, {}, body, secret],
      [
        'a timestamp of 400 digits',
        tooOld,
        { ...headers, 'webhook-timestamp': '9'.repeat(400) },
        body,
        secret,
      ],
      ['a deeply nested message', tooDeep, sign(secret, nested), Buffer.from(nested), secret],
    ] as const)
      assert.deepEqual(verifyInPython(headersGiven, bodyGiven, secretGiven), expected, what);
  });

  test('accepts the signature of each secret, and returns the message', () => {
    const previous = newSecret();
    const headers = sign(`${secret}\n${previous}`, body.toString());
    for (const each of [secret, previous])
      assert.deepEqual(verifyWebhook(headers, body, each), { paymentId: '1' });
  });

  test('refuses a changed message, another secret, an old one, and one without a signature', () => {
    const headers = sign(secret, body.toString());
    const timestamp = String(Number(headers['webhook-timestamp']) - 301);
    assert.throws(() => verifyWebhook(headers, Buffer.from('{"paymentId":"2"}'), secret), /wrong/);
    assert.throws(() => verifyWebhook(headers, body, newSecret()), /wrong/);
    assert.throws(() => verifyWebhook({ ...headers, 'webhook-timestamp': timestamp }, body, secret), /old/);
    assert.throws(() => verifyWebhook({ ...headers, 'webhook-signature': undefined }, body, secret), /wrong/);
    assert.throws(() => verifyWebhook({}, body, secret), /old/);
  });
});
