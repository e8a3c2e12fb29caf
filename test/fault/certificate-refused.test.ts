/** Certificates that the bank or the gateway refuses: nothing is sent, and the error states the reason. */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { startCommand } from '../kit/command.ts';
import { type Sections, startBank, startGateway } from '../kit/gateway.ts';
import { createAuthority, type IssuedCertificate } from '../kit/openssl.ts';
import { freePort } from '../kit/ports.ts';
import { newCall, transfersPath } from '../kit/request.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { within } from '../kit/within.ts';
import { methods } from './fault-contract.ts';

const life = scopeOfAllTests();
const authority = createAuthority(life);
const stranger = createAuthority(life, 'stranger');
const bankOwn = authority.issue('bank');
const qwac = authority.issue('qwac');

/** Every call fails with this error, and the log contains it. */
async function assertRefused(t: TestContext, environment: object, proxyError: string, text: RegExp) {
  const sections: Sections = { environments: { active: 'sandbox', sandbox: environment } };
  const gateway = await startGateway(t, sections);
  for (const method of methods) {
    const request = newCall(method, method === 'POST' ? transfersPath : `${transfersPath}/a-payment`);
    for (const again of ['the first time', 'with the same X-Request-ID']) {
      const reply = await within(8_000, 'an answer', call(gateway.url, request));
      assert.equal(reply.header('penstock-error'), 'UPSTREAM_UNREACHED', again);
      assert.equal(reply.status, 502);
      assert.match(reply.header('proxy-status') ?? '', new RegExp(`error=${proxyError};`));
      const { text: shown } = JSON.parse(reply.text).tppMessages[0];
      assert.match(shown, /^UPSTREAM_UNREACHED: /);
      assert.match(shown.slice('UPSTREAM_UNREACHED: '.length), text);
    }
  }
  assert.ok(
    gateway.logLines.some((line) => text.test(JSON.parse(line).why ?? '')),
    'the log contains the reason',
  );
}

const tlsWith = (issued?: IssuedCertificate) => ({
  caFile: authority.certFile,
  ...(issued && { certFile: issued.certFile, keyFile: issued.keyFile }),
});

/** An `openssl s_server`, which refuses client certificates with TLS alerts. @returns its base URL */
async function startOpenssl(t: TestContext, ...options: readonly string[]): Promise<string> {
  const port = await freePort();
  const server = startCommand(t, 'openssl', [
    ...['s_server', '-accept', `127.0.0.1:${port}`, '-cert', bankOwn.certFile, '-key', bankOwn.keyFile],
    ...['-CAfile', authority.certFile, '-Verify', '1', '-verify_return_error', '-www', ...options],
  ]);
  await server.waitForOutput('ACCEPT');
  return `https://127.0.0.1:${port}`;
}

/** In two years, in seconds since 1970: the certificates of this test have expired then. */
const later = String(Math.floor(Date.now() / 1_000) + 2 * 365 * 86_400);

describe('client certificate that the bank refuses', () => {
  for (const version of ['-tls1_2', '-tls1_3']) {
    const cases: Readonly<
      Record<string, readonly [IssuedCertificate | undefined, readonly string[], RegExp]>
    > = {
      'because it has expired': [
        qwac,
        ['-attime', later],
        /refused the gateway's client certificate as expired/,
      ],
      'because of an unknown issuer': [
        stranger.issue(`of-a-stranger${version}`),
        [],
        /does not trust the issuer of the gateway's client certificate/,
      ],
    };
    for (const [why, [issued, options, text]] of Object.entries(cases)) {
      test(`is reported ${why}, over ${version.slice(1)}`, async (t) => {
        const baseUrl = await startOpenssl(t, version, ...options);
        await assertRefused(t, { baseUrl, tls: tlsWith(issued) }, 'tls_alert_received', text);
      });
    }
  }

  test('is reported if the bank requires one and there is none, over TLS 1.3', async (t) => {
    const baseUrl = await startOpenssl(t, '-tls1_3');
    await assertRefused(
      t,
      { baseUrl, tls: tlsWith() },
      'tls_alert_received',
      /requires a client certificate, and the gateway sent none/,
    );
  });
});

describe('certificate of the bank that the gateway refuses', () => {
  const refused: Readonly<Record<string, readonly [IssuedCertificate, object, RegExp]>> = {
    'it has expired': [
      authority.issue('expired', { from: '20250101000000Z', until: '20260101000000Z' }),
      {},
      /^The bank's certificate has expired; nothing was sent/,
    ],
    'it does not match serverName': [
      bankOwn,
      { serverName: 'api.bank.example' },
      /^The bank's certificate does not match its host name; nothing was sent/,
    ],
    'its issuer is unknown': [
      stranger.issue('bank-of-a-stranger'),
      {},
      /^The bank's certificate is not trusted; nothing was sent/,
    ],
  };
  for (const [why, [{ cert, key }, tls, text]] of Object.entries(refused)) {
    test(`receives no request if ${why}`, async (t) => {
      const bank = await startBank(t, { tls: { cert, key } });
      await assertRefused(
        t,
        { baseUrl: bank.baseUrl, tls: { ...tlsWith(), ...tls } },
        'tls_certificate_error',
        text,
      );
      assert.equal(bank.requests.length, 0);
      assert.equal(bank.malformed, 0, 'and nothing in plain HTTP');
    });
  }

  test('is accepted if it matches serverName, regardless of the host of baseUrl', async (t) => {
    const bank = await startBank(t, { tls: bankOwn });
    const tls = { ...tlsWith(qwac), serverName: 'localhost' };
    const gateway = await startGateway(t, { environments: { sandbox: { baseUrl: bank.baseUrl, tls } } });
    assert.equal((await call(gateway.url, newCall('POST', transfersPath))).status, 201);
  });
});
