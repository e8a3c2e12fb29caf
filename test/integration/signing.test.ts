/** Requests to a bank that wants every one of them signed. */

import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { headerFieldsFrom, headerValue } from '../../src/pis/headers.ts';
import { switchEnvironment } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { exampleOf } from '../kit/examples.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { lifeOfAllTests } from '../kit/life.ts';
import { copyCertificateFiles, createAuthority, replaceCertificateFiles } from '../kit/openssl.ts';
import { initiation, transfers } from '../kit/request.ts';
import { until } from '../kit/within.ts';

const authority = createAuthority(lifeOfAllTests());
const [seal, nextSeal] = [
  authority.issue('seal', { key: 'rsa' }),
  authority.issue('next-seal', { key: 'rsa' }),
];
const ecSeal = authority.issue('ec-seal');

/** A strict bank, and a gateway that signs with files of its own. */
async function startSealing(t: TestContext, algorithm = 'rsa-sha256', issued = seal) {
  const own = copyCertificateFiles(temporaryFolder(t), 'seal', issued);
  const bank = await startBank(t, { sealAuthority: authority.cert });
  const signing = { certFile: own.certFile, keyFile: own.keyFile, algorithm };
  const gateway = await startGateway(t, {
    environments: { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl, signing } },
    circuit: { minimumCalls: 1, failureRate: '1%', openFor: '1s' },
  });
  return { bank, gateway, own, ask: (one: Parameters<typeof call>[1]) => call(gateway.url, one) };
}

describe('a bank that wants signatures', () => {
  for (const [algorithm, issued] of [
    ['rsa-sha256', seal],
    ['rsa-sha512', seal],
    ['ecdsa-sha256', ecSeal],
  ] as const) {
    test(`takes payments, reads and cancellations that are signed by ${algorithm}`, async (t) => {
      const { ask } = await startSealing(t, algorithm, issued);
      const paid = await ask(initiation);
      assert.equal(paid.status, 201, paid.text);
      const path = `${transfers}/${JSON.parse(paid.text).paymentId}`;
      assert.equal((await ask({ method: 'GET', path })).status, 200);
      assert.equal((await ask({ method: 'GET', path: `${path}/status` })).status, 200);
      assert.ok((await ask({ method: 'DELETE', path })).status < 300);
    });
  }

  for (const name of ['initiate-payment-pain001', 'initiate-periodic-payment-multipart'] as const) {
    test(`takes the published example ${name}: the seal is over the bytes that are sent`, async (t) => {
      const { ask, bank } = await startSealing(t);
      const { method, path, headers, body } = exampleOf(name);
      const reply = await ask({
        method,
        path: `/berlingroup/v1${path}`,
        headers,
        ...(body !== undefined && { body }),
      });
      assert.equal(reply.status, 201, reply.text);
      assert.equal(bank.payments.length, 1);
    });
  }

  test('takes the probes of the gateway itself: before a switch, and while a circuit is open', async (t) => {
    const { bank, gateway, ask } = await startSealing(t);
    await switchEnvironment(gateway, 'sandbox');
    bank.injectFault({ name: 'status', status: 500 }, { times: 1 });
    await ask(initiation);
    await until(5_000, 'the bank is probed', () => bank.requests.length === 3);
    const probes = bank.requests.filter(({ operation }) => operation === undefined);
    assert.equal(probes.length, 2);
    for (const { rawHeaders } of probes) assert.ok(headerValue(headerFieldsFrom(rawHeaders), 'signature'));
    await until(5_000, 'it pays again', async () => (await ask(initiation)).status === 201);
  });

  test('hears what a TPP has signed itself exactly as that was signed', async (t) => {
    const { bank, ask } = await startSealing(t);
    const signed = [
      ['Digest', 'SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='],
      [
        'Signature',
        'keyId="SN=1,CA=CN=TPP",algorithm="rsa-sha256",headers="digest x-request-id",signature="aaaa"',
      ],
      ['TPP-Signature-Certificate', 'bbbb'],
    ] as const;
    const reply = await ask({ ...initiation, headers: [...initiation.headers, ...signed] });
    assert.equal(reply.status, 400, 'it has been judged by the bank');
    const heard = headerFieldsFrom(bank.requests[0]?.rawHeaders ?? []);
    for (const [name, value] of signed)
      assert.deepEqual(
        heard.filter(([field]) => field.toLowerCase() === name.toLowerCase()).map(([, one]) => one),
        [value],
      );
  });

  test('sees the next seal within 5 s of its exchange on the disk, and no request fails meanwhile', async (t) => {
    const { bank, ask, own } = await startSealing(t);
    assert.equal((await ask(initiation)).status, 201);
    replaceCertificateFiles(own, nextSeal);
    const serialOf = (rawHeaders: readonly string[] = []) => {
      const base64 = headerValue(headerFieldsFrom(rawHeaders), 'tpp-signature-certificate') ?? '';
      return new X509Certificate(Buffer.from(base64, 'base64')).serialNumber;
    };
    const wanted = new X509Certificate(nextSeal.cert).serialNumber;
    await until(5_000, 'the next seal is used', async () => {
      assert.equal((await ask(initiation)).status, 201);
      return serialOf(bank.requests.at(-1)?.rawHeaders) === wanted;
    });
  });
});

test('without a seal nothing is signed, and such a bank refuses it', async (t) => {
  const bank = await startBank(t, { sealAuthority: authority.cert });
  const gateway = await startGateway(t, { environments: { sandbox: { baseUrl: bank.baseUrl } } });
  const reply = await call(gateway.url, initiation);
  assert.equal(reply.status, 401);
  assert.equal(JSON.parse(reply.text).tppMessages[0].code, 'SIGNATURE_MISSING');
});
