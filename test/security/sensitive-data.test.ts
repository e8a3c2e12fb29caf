/**
 * Attack: many employees can read the logs, the metrics and the console, and find a payer's IBAN or a valid token there. So
 * marked values are inserted in every place that a TPP, a bank, an operator or the configuration can fill, and then every
 * output of the gateway is searched for them.
 */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { stringify } from 'yaml';
import {
  anyCanary,
  anyCanaryOr,
  decodeBase64Parts,
  paymentIdWithCanary,
  requestWithCanaries,
} from '../kit/canaries.ts';
import { startCommand, writeConfigFile } from '../kit/command.ts';
import { startCommandRunner } from '../kit/command-runner.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startBank } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { createAuthority } from '../kit/openssl.ts';
import {
  type CapturedGateway,
  type OutputChannel,
  outputChannels,
  startCapturedGateway,
} from '../kit/output-capture.ts';
import { sendRaw } from '../kit/raw-connection.ts';
import { skipWithoutRedisServer } from '../kit/redis.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';
import { firstPayment, sendEach, sensitiveDataSources } from './sensitive-data-samples.ts';

const authority = createAuthority(scopeOfAllTests());
const qwac = authority.issue('qwac');
const seal = authority.issue('seal', { key: 'rsa' });

/** The base64 lines of a PEM file. */
const linesOf = (pem: string) => pem.split('\n').filter((line) => /^[A-Za-z0-9+/]{20,}={0,2}$/.test(line));
const keyLines = [qwac, seal].flatMap(({ cert, key }) => [...linesOf(cert), ...linesOf(key)]);

const bankWith = (name: string, more: object = {}) => {
  const { cert, key } = authority.issue(name, { subject: `/CN=canary-${name}`, ...more });
  const tls = { caFile: authority.certFile, certFile: qwac.certFile, keyFile: qwac.keyFile };
  const signing = { certFile: seal.certFile, keyFile: seal.keyFile };
  return { bank: { tls: { cert, key } }, environment: { tls, signing }, secrets: keyLines };
};

const banksWithTls = {
  'with another name': bankWith('stranger', { extensions: 'subjectAltName = DNS:canary-name.example' }),
  'that has expired': bankWith('expired', { from: '20250101000000Z', until: '20260101000000Z' }),
  'that is trusted, and of signatures': bankWith('good'),
};

const encryptionKey = Buffer.from('canary-encryption-key-of-32-byte');

function keyFile(t: TestContext, content = encryptionKey.toString('base64')): string {
  const file = join(temporaryFolder(t), 'state.key');
  writeFileSync(file, `${content}\n`);
  return file;
}

const paymentIds = new RegExp(paymentIdWithCanary, 'g');
/** Operators see payments, and which payment and product a request was for. */
const paths = new RegExp(`${paymentIdWithCanary}|canary-product|canary-id`, 'g');
const shownToOperators = { 'the admin API': paths, 'reports, and penstock explain': paths };

/** Every output of the gateway has content, and no marked value. */
async function assertNoSensitiveData(
  gateway: CapturedGateway,
  allowed: Partial<Record<OutputChannel, RegExp>> = {},
): Promise<void> {
  const outputs = Object.entries(await gateway.outputs());
  const secret = anyCanaryOr(gateway.secrets);
  for (const [channel, text] of outputs) {
    // `outputs` has the keys of this table.
    assert.match(text, outputChannels[channel as OutputChannel], `${channel} is empty`);
    const searched = decodeBase64Parts(text).replaceAll(allowed[channel as OutputChannel] ?? /(?!)/g, '');
    const at = searched.search(secret);
    const found = at < 0 ? undefined : searched.slice(Math.max(0, at - 120), at + 80);
    assert.equal(found, undefined, channel);
  }
}

describe('H9: the output of the gateway', () => {
  for (const [source, { options, insert, ownCommands }] of Object.entries(
    sensitiveDataSources(banksWithTls),
  )) {
    test(`contains no personal or secret data from ${source}`, async (t) => {
      const { secrets = [], ...rest } = options ?? {};
      const state = { encryptionKeyFile: keyFile(t) };
      const allSecrets = [...secrets, encryptionKey.toString('base64'), encryptionKey.toString('hex')];
      const gateway = await startCapturedGateway(t, {
        ...rest,
        sections: { state },
        secrets: allSecrets,
      });
      const { status } = await gateway.send(firstPayment());
      if (options === undefined) assert.equal(status, 201);
      await insert(gateway);
      await assertNoSensitiveData(gateway, {
        ...(ownCommands && { 'commands to Redis': ownCommands }),
        ...shownToOperators,
      });
    });
  }
});

describe('H9: Redis without encryption', {
  skip: skipWithoutRedisServer,
}, () => {
  test('contains responses of the bank, but no token, API key, PSU data or payment order, and no payment id in a key', async (t) => {
    const gateway = await startCapturedGateway(t);
    await gateway.send(firstPayment());
    await sendEach(gateway);
    // The links in the bank's responses contain the payment id.
    await assertNoSensitiveData(gateway, { 'commands to Redis': paymentIds, ...shownToOperators });
  });
});

/** Errors with marked values, as a library may throw them. */
const throwingCode = [
  "throw new Error('can' + 'ary')",
  "throw 'can' + 'ary'",
  "throw Object.assign(new AggregateError([new Error('can' + 'ary')], 'can' + 'ary', { cause: 'can' + 'ary' }), { body: 'can' + 'ary' })",
  "Promise.reject({ toString: () => 'can' + 'ary', headers: { authorization: 'can' + 'ary' } })",
];

describe('H9: the output of a process that ends', () => {
  for (const bug of throwingCode) {
    test(`contains no personal or secret data after an uncaught error: ${bug.split('(')[0]}`, async (t) => {
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
      assert.doesNotMatch(decodeBase64Parts(command.stdout() + command.stderr()), anyCanary);
    });
  }

  test('contains no personal or secret data from an invalid configuration', async (t) => {
    const file = (name: string) => {
      const path = join(temporaryFolder(t), name);
      writeFileSync(path, 'canary\n-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----\n');
      return path;
    };
    const tls = { certFile: file('a.crt'), keyFile: file('a.key') };
    const good = { listen: { port: 0 }, admin: { port: 0 } };
    // The gateway reports all faults of one kind at once.
    const environments = {
      active: 'sandbox',
      sandbox: { baseUrl: 'https://127.0.0.1:1', tls },
      signed: { baseUrl: 'https://a.example', signing: tls },
    };
    const withCredentials = { sandbox: { baseUrl: 'https://canary:canary@bank.example' } };
    const faulty: readonly (readonly [string, Readonly<Record<string, string>>, readonly string[]])[] = [
      [
        stringify({ ...good, listen: { tls }, environments }),
        {},
        ['listen.tls', 'sandbox.tls', 'signed.signing'].flatMap((at) => [`${at}.certFile`, `${at}.keyFile`]),
      ],
      [
        stringify({ ...good, environments: withCredentials }),
        { PENSTOCK_STATE_REDIS: 'canary', PENSTOCK_CLIENTS: 'canary', PENSTOCK_LISTEN_PORT: 'canary' },
        ['environments.sandbox.baseUrl', 'state.redis', 'clients[0]', 'listen.port'],
      ],
      [plain(good, { encryptionKeyFile: file('state.key') }), {}, []],
      [plain(good, { redis: 'redis://user:canary@127.0.0.1:1' }), {}, []],
      [plain(good), { PENSTOCK_STATE_REDIS: 'redis://user:canary@127.0.0.1:1' }, []],
      ['state: { redis: "redis://:canary@host', {}, []],
    ];
    const run = startCommandRunner(t);
    for (const [text, variables, reported] of faulty) {
      const config = writeConfigFile(t, text);
      const { stdout, stderr } = await run(['check', '--config', config], variables);
      for (const output of [stdout + stderr, await outputOfStart(t, config, variables)]) {
        assert.ok(output.length > 0, text);
        for (const setting of reported) assert.ok(output.includes(`${setting}: `), `${setting}: ${output}`);
        assert.doesNotMatch(decodeBase64Parts(output), anyCanary);
      }
    }
  });
});

/** Until the gateway serves, as it does without its Redis, or has refused to start. */
async function outputOfStart(
  t: TestContext,
  config: string,
  variables: Readonly<Record<string, string>>,
): Promise<string> {
  const command = startCommand(t, process.execPath, ['src/main.ts', 'serve', '--config', config], variables);
  let hasExited = false;
  const ended = command.exitCode().then(() => {
    hasExited = true;
  });
  const serves = () => command.stdout().includes('"serving"');
  await until(20_000, 'it has exited or serves', () => hasExited || serves());
  command.kill('SIGKILL');
  await ended;
  return command.stdout() + command.stderr();
}

const plain = (good: object, state: object = {}) =>
  stringify({ ...good, environments: { sandbox: { baseUrl: 'https://a.example' } }, state });
