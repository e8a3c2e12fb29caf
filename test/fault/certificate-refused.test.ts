/** The bank does not like our certificate, or we do not like the bank's: nothing is paid, and it is said why. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { startCommand } from '../kit/command.ts';
import { type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { lifeOfAllTests } from '../kit/life.ts';
import { createAuthority, type IssuedCertificate } from '../kit/openssl.ts';
import { freePort } from '../kit/ports.ts';
import { newCall, transfers } from '../kit/request.ts';
import { within } from '../kit/within.ts';
import { methods } from './fault-contract.ts';

const life = lifeOfAllTests();
const authority = createAuthority(life);
const stranger = createAuthority(life, 'stranger');
const bankOwn = authority.issue('bank');
const qwac = authority.issue('qwac');

/** Every call fails like this, and the log says the same. */
async function assertRefused(t: TestContext, environment: object, proxyError: string, text: RegExp) {
  const sections: Sections = { environments: { active: 'sandbox', sandbox: environment } };
  const gateway = await startGateway(t, sections);
  for (const method of methods) {
    const request = newCall(method, method === 'POST' ? transfers : `${transfers}/a-payment`);
    for (const again of ['the first time', 'with the same X-Request-ID']) {
      const reply = await within(8_000, 'an answer', call(gateway.url, request));
      assert.equal(reply.header('penstock-error'), 'UPSTREAM_UNREACHED', again);
      assert.equal(reply.status, 502);
      assert.match(reply.header('proxy-status') ?? '', new RegExp(`error=${proxyError};`));
      assert.match(JSON.parse(reply.text).tppMessages[0].text, text);
    }
  }
  assert.ok(
    gateway.logLines.some((line) => text.test(JSON.parse(line).why ?? '')),
    'the log says it, too',
  );
}

const tlsWith = (shown?: IssuedCertificate) => ({
  caFile: authority.certFile,
  ...(shown && { certFile: shown.certFile, keyFile: shown.keyFile }),
});

/** A server of OpenSSL's own, which tells by alerts what it thinks of client certificates. @returns its base URL */
async function startOpenssl(t: TestContext, ...options: readonly string[]): Promise<string> {
  const port = await freePort();
  const server = startCommand(t, 'openssl', [
    ...['s_server', '-accept', `127.0.0.1:${port}`, '-cert', bankOwn.certFile, '-key', bankOwn.keyFile],
    ...['-CAfile', authority.certFile, '-Verify', '1', '-verify_return_error', '-www', ...options],
  ]);
  await server.waitForOutput('ACCEPT');
  return `https://127.0.0.1:${port}`;
}

/** Two years ahead, in seconds since 1970: whatever is valid today has expired then. */
const later = String(Math.floor(Date.now() / 1_000) + 2 * 365 * 86_400);

describe('a bank that refuses the client certificate is not reached, and the error says why', () => {
  for (const version of ['-tls1_2', '-tls1_3']) {
    const asked: Readonly<
      Record<string, readonly [IssuedCertificate | undefined, readonly string[], RegExp]>
    > = {
      'it has expired for the bank': [
        qwac,
        ['-attime', later],
        /refused the gateway's client certificate as expired/,
      ],
      'the bank does not know its issuer': [
        stranger.issue(`of-a-stranger${version}`),
        [],
        /does not believe the issuer of the gateway's client certificate/,
      ],
    };
    for (const [why, [shown, options, text]] of Object.entries(asked)) {
      test(`${why}, over ${version.slice(1)}`, async (t) => {
        const baseUrl = await startOpenssl(t, version, ...options);
        await assertRefused(t, { baseUrl, tls: tlsWith(shown) }, 'tls_alert_received', text);
      });
    }
  }

  test('there is none, over TLS 1.3', async (t) => {
    const baseUrl = await startOpenssl(t, '-tls1_3');
    await assertRefused(
      t,
      { baseUrl, tls: tlsWith() },
      'tls_alert_received',
      /wants a client certificate and was shown none/,
    );
  });
});

describe('a bank whose own certificate is wrong hears nothing', () => {
  const wrong: Readonly<Record<string, readonly [IssuedCertificate, object, RegExp]>> = {
    'it has expired': [
      authority.issue('expired', { from: '20250101000000Z', until: '20260101000000Z' }),
      {},
      /^The bank's certificate has expired; nothing was sent/,
    ],
    'it is for another name than serverName': [
      bankOwn,
      { serverName: 'api.bank.example' },
      /^The bank's certificate is for another name; nothing was sent/,
    ],
    'nobody whom we believe has issued it': [
      stranger.issue('bank-of-a-stranger'),
      {},
      /^The bank's certificate is not believed; nothing was sent/,
    ],
  };
  for (const [why, [{ cert, key }, tls, text]] of Object.entries(wrong)) {
    test(why, async (t) => {
      const bank = await startBank(t, { tls: { cert, key } });
      await assertRefused(
        t,
        { baseUrl: bank.baseUrl, tls: { ...tlsWith(), ...tls } },
        'tls_certificate_error',
        text,
      );
      assert.equal(bank.requests.length, 0);
      assert.equal(bank.malformed, 0, 'nor anything in plain HTTP');
    });
  }

  test('one that fits serverName is believed, whatever the host of baseUrl', async (t) => {
    const bank = await startBank(t, { tls: bankOwn });
    const tls = { ...tlsWith(qwac), serverName: 'localhost' };
    const gateway = await startGateway(t, { environments: { sandbox: { baseUrl: bank.baseUrl, tls } } });
    assert.equal((await call(gateway.url, newCall('POST', transfers))).status, 201);
  });
});
