/**
 * The story: half the company may read the logs, the metrics and the console, and who reads them finds a payer's IBAN, or
 * a token that still works. So marked values are put wherever a TPP, a bank, an operator or a configuration can put one,
 * one hiding place a row; and after each, everything that was told by any way is searched.
 */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { stringify } from 'yaml';
import { anyCanary, anyOf, paymentIdWithCanary, requestWithCanaries, revealed } from '../kit/canaries.ts';
import { startCommand, writeConfigFile } from '../kit/command.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startBank } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { lifeOfAllTests } from '../kit/life.ts';
import { createAuthority } from '../kit/openssl.ts';
import {
  type CapturedGateway,
  type OutputChannel,
  outputChannels,
  startCapturedGateway,
} from '../kit/output-capture.ts';
import { sendRaw } from '../kit/raw.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { until } from '../kit/within.ts';
import { firstPayment, hidingPlaces, sendEach } from './sensitive-data-samples.ts';

const authority = createAuthority(lifeOfAllTests());
const qwac = authority.issue('qwac');
const seal = authority.issue('seal', { key: 'rsa' });

/** Everything that stands in a PEM file, line by line. */
const linesOf = (pem: string) => pem.split('\n').filter((line) => /^[A-Za-z0-9+/]{20,}={0,2}$/.test(line));
const keyLines = [qwac, seal].flatMap(({ cert, key }) => [...linesOf(cert), ...linesOf(key)]);

const bankWith = (name: string, more: object = {}) => {
  const { cert, key } = authority.issue(name, { subject: `/CN=canary-${name}`, ...more });
  const tls = { caFile: authority.certFile, certFile: qwac.certFile, keyFile: qwac.keyFile };
  const signing = { certFile: seal.certFile, keyFile: seal.keyFile };
  return { bank: { tls: { cert, key } }, environment: { tls, signing }, secrets: keyLines };
};

const banksWithTls = {
  'of another name': bankWith('stranger', { extensions: 'subjectAltName = DNS:canary-name.example' }),
  'that has expired': bankWith('expired', { from: '20250101000000Z', until: '20260101000000Z' }),
  'that is believed, and in signatures': bankWith('good'),
};

const encryptionKey = Buffer.from('canary-encryption-key-of-32-byte');

function keyFile(t: TestContext, content = encryptionKey.toString('base64')): string {
  const file = join(temporaryFolder(t), 'state.key');
  writeFileSync(file, `${content}\n`);
  return file;
}

/** Nothing is found anywhere; and everywhere there was something to search. */
async function assertTold(
  telling: CapturedGateway,
  allowed: Partial<Record<OutputChannel, RegExp>> = {},
): Promise<void> {
  const told = Object.entries(await telling.outputs());
  const secret = anyOf(telling.secrets);
  for (const [way, text] of told) {
    const sign = outputChannels[way as OutputChannel]; // the names of the very same table
    assert.match(text, sign, `${way}: nothing to search`);
    const searched = revealed(text).replaceAll(allowed[way as OutputChannel] ?? /(?!)/g, '');
    const [found] = searched.match(new RegExp(`.{0,120}(?:${secret.source}).{0,60}`, 'i')) ?? [];
    assert.equal(found, undefined, way);
  }
}

describe('H9: nothing personal and no secret is told', () => {
  for (const [place, { wishes, hide, ownCommands }] of Object.entries(hidingPlaces(banksWithTls))) {
    test(`that was hidden in ${place}`, async (t) => {
      const { secrets = [], ...rest } = wishes ?? {};
      const state = { encryptionKeyFile: keyFile(t) };
      const secretsToo = [...secrets, encryptionKey.toString('base64'), encryptionKey.toString('hex')];
      const telling = await startCapturedGateway(t, {
        ...rest,
        sections: { state },
        secrets: secretsToo,
      });
      const { status } = await telling.send(firstPayment());
      if (wishes === undefined) assert.equal(status, 201);
      await hide(telling);
      await assertTold(telling, { ...(ownCommands && { 'commands to Redis': ownCommands }) });
    });
  }
});

describe('H9: without encryption, Redis holds what the bank says', { skip: skipWithoutRedisServer }, () => {
  test('and no token, no API key, no PSU, nothing of a payment order; and no key names a payment', async (t) => {
    const telling = await startCapturedGateway(t);
    await telling.send(firstPayment());
    await sendEach(telling);
    // What stands in an answer of the bank: the payment's id, in its links.
    await assertTold(telling, { 'commands to Redis': new RegExp(paymentIdWithCanary, 'g') });
  });
});

/** What may be thrown anywhere, and what a library may hang on it. */
const thrown = [
  "throw new Error('can' + 'ary')",
  "throw 'can' + 'ary'",
  "throw Object.assign(new AggregateError([new Error('can' + 'ary')], 'can' + 'ary', { cause: 'can' + 'ary' }), { body: 'can' + 'ary' })",
  "Promise.reject({ toString: () => 'can' + 'ary', headers: { authorization: 'can' + 'ary' } })",
];

describe('H9: a process that ends tells nothing either', () => {
  for (const bug of thrown) {
    test(`after ${bug.split('(')[0]}, which nobody catches`, async (t) => {
      const bank = await startBank(t);
      const script = `process.on('SIGUSR2', () => { ${bug}; })`;
      const variables = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}` };
      const sections = { environments: { sandbox: { baseUrl: bank.baseUrl } }, log: { level: 'trace' } };
      const { command, port } = await startGatewayProcess(t, sections, { variables });
      await sendRaw(port, firstPayment());
      await sendRaw(port, requestWithCanaries('GET /canary HTTP/1.1'));
      command.kill('SIGUSR2');
      assert.equal(await command.exitCode(), 70);
      assert.match(command.stdout(), /stopping: uncaught error/);
      assert.doesNotMatch(revealed(command.stdout() + command.stderr()), anyCanary);
    });
  }

  test('when it starts or cannot, whatever stands in its files and variables', async (t) => {
    const file = (name: string) => {
      const path = join(temporaryFolder(t), name);
      writeFileSync(path, 'canary\n-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----\n');
      return path;
    };
    const tls = { certFile: file('a.crt'), keyFile: file('a.key') };
    const environments = { sandbox: { baseUrl: 'https://127.0.0.1:1', tls } };
    const good = { listen: { port: 0 }, admin: { port: 0 } };
    const faulty: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
      [stringify({ ...good, environments }), {}],
      [
        stringify({ ...good, environments: { sandbox: { baseUrl: 'https://canary:canary@bank.example' } } }),
        {},
      ],
      [stringify({ ...good, environments: { sandbox: { baseUrl: 'https://a.example', signing: tls } } }), {}],
      [
        stringify({ ...good, listen: { tls }, environments: { sandbox: { baseUrl: 'https://a.example' } } }),
        {},
      ],
      [plain(good, { encryptionKeyFile: file('state.key') }), {}],
      [plain(good, { redis: 'redis://user:canary@127.0.0.1:1' }), {}],
      [plain(good), { PENSTOCK_STATE_REDIS: 'redis://user:canary@127.0.0.1:1' }],
      [plain(good), { PENSTOCK_STATE_REDIS: 'canary' }],
      [plain(good), { PENSTOCK_CLIENTS: 'canary', PENSTOCK_LISTEN_PORT: 'canary' }],
      ['state: { redis: "redis://:canary@host', {}],
    ];
    for (const [text, variables] of faulty) {
      for (const word of ['check', 'serve']) {
        const args = ['src/main.ts', word, '--config', writeConfigFile(t, text)];
        const command = startCommand(t, process.execPath, args, variables);
        let over = false;
        const ended = command.exitCode().then(() => {
          over = true;
        });
        const serves = () => command.stdout().includes('"serving"'); // without its Redis it does, and is not ready
        await until(20_000, 'it has said what it has to say', () => over || serves());
        command.kill('SIGKILL');
        await ended;
        const said = command.stdout() + command.stderr();
        assert.ok(said.length > 0, text);
        assert.doesNotMatch(revealed(said), anyCanary);
      }
    }
  });
});

const plain = (good: object, state: object = {}) =>
  stringify({ ...good, environments: { sandbox: { baseUrl: 'https://a.example' } }, state });
