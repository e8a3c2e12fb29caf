/** Requests to a bank that requires signatures. */

import assert from 'node:assert/strict';
import { createHash, randomUUID, verify, X509Certificate } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { headerFieldsFrom, headerValue } from '../../src/pis/headers.ts';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { switchEnvironment } from '../kit/admin-api.ts';
import { call } from '../kit/call.ts';
import { exampleOf } from '../kit/examples.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { copyCertificateFiles, createAuthority, replaceCertificateFiles } from '../kit/openssl.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';

const authority = createAuthority(scopeOfAllTests());
const [qseal, nextQseal] = [
  authority.issue('qseal', { key: 'rsa' }),
  authority.issue('next-qseal', { key: 'rsa' }),
];
const ecQseal = authority.issue('ec-qseal');

/** A bank that requires signatures, and a gateway that signs with its own copy of the files. */
async function startSigning(t: TestContext, algorithm = 'rsa-sha256', issued = qseal) {
  const own = copyCertificateFiles(temporaryFolder(t), 'qseal', issued);
  const bank = await startBank(t, { sealAuthority: authority.cert });
  const signing = { certFile: own.certFile, keyFile: own.keyFile, algorithm };
  const gateway = await startGateway(t, {
    environments: { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl, signing } },
    circuit: { minimumCalls: 1, failureRate: '1%', openFor: '1s' },
  });
  return { bank, gateway, own, ask: (one: Parameters<typeof call>[1]) => call(gateway.url, one) };
}

describe('bank that requires signatures', () => {
  for (const [algorithm, issued] of [
    ['rsa-sha256', qseal],
    ['rsa-sha512', qseal],
    ['ecdsa-sha256', ecQseal],
  ] as const) {
    test(`accepts payments, reads and cancellations signed with ${algorithm}`, async (t) => {
      const { ask } = await startSigning(t, algorithm, issued);
      const paid = await ask(initiation);
      assert.equal(paid.status, 201, paid.text);
      const path = `${transfersPath}/${JSON.parse(paid.text).paymentId}`;
      assert.equal((await ask({ method: 'GET', path })).status, 200);
      assert.equal((await ask({ method: 'GET', path: `${path}/status` })).status, 200);
      assert.ok((await ask({ method: 'DELETE', path })).status < 300);
    });
  }

  for (const name of ['initiate-payment-pain001', 'initiate-periodic-payment-multipart'] as const) {
    test(`accepts the published example ${name}`, async (t) => {
      const { ask, bank } = await startSigning(t);
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

  test('accepts the probes of the gateway, before a switch and while a circuit is open', async (t) => {
    const { bank, gateway, ask } = await startSigning(t);
    await switchEnvironment(gateway, 'sandbox');
    bank.injectFault({ name: 'status', status: 500 }, { times: 1 });
    await ask(initiation);
    await until(5_000, 'the bank is probed', () => bank.requests.length === 3);
    const probes = bank.requests.filter(({ operation }) => operation === undefined);
    assert.equal(probes.length, 2);
    for (const { rawHeaders } of probes) assert.ok(headerValue(headerFieldsFrom(rawHeaders), 'signature'));
    await until(5_000, 'a payment succeeds again', async () => (await ask(initiation)).status === 201);
  });

  test('receives the signature of the TPP unchanged if the TPP has signed the request', async (t) => {
    const { bank, ask } = await startSigning(t);
    const signed = [
      ['Digest', 'SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='],
      [
        'Signature',
        'keyId="SN=1,CA=CN=TPP",algorithm="rsa-sha256",headers="digest x-request-id",signature="aaaa"',
      ],
      ['TPP-Signature-Certificate', 'bbbb'],
    ] as const;
    const reply = await ask({ ...initiation, headers: [...initiation.headers, ...signed] });
    assert.equal(reply.status, 400, 'the bank has checked it');
    const received = headerFieldsFrom(bank.requests[0]?.rawHeaders ?? []);
    for (const [name, value] of signed)
      assert.deepEqual(
        received.filter(([field]) => field.toLowerCase() === name.toLowerCase()).map(([, one]) => one),
        [value],
      );
  });

  test('receives signatures with the new certificate after its files were replaced, and no request fails', async (t) => {
    const { bank, ask, own } = await startSigning(t);
    assert.equal((await ask(initiation)).status, 201);
    replaceCertificateFiles(own, nextQseal);
    const serialOf = (rawHeaders: readonly string[] = []) => {
      const base64 = headerValue(headerFieldsFrom(rawHeaders), 'tpp-signature-certificate') ?? '';
      return new X509Certificate(Buffer.from(base64, 'base64')).serialNumber;
    };
    const wanted = new X509Certificate(nextQseal.cert).serialNumber;
    await until(5_000, 'the new certificate is used', async () => {
      assert.equal((await ask(initiation)).status, 201);
      return serialOf(bank.requests.at(-1)?.rawHeaders) === wanted;
    });
  });
});

test('a bank that requires signatures refuses the unsigned request of a gateway without a signing certificate', async (t) => {
  const bank = await startBank(t, { sealAuthority: authority.cert });
  const gateway = await startGateway(t, { environments: { sandbox: { baseUrl: bank.baseUrl } } });
  const reply = await call(gateway.url, initiation);
  assert.equal(reply.status, 401);
  assert.equal(JSON.parse(reply.text).tppMessages[0].code, 'SIGNATURE_MISSING');
});

describe('bank that requires another signature than the standard', () => {
  const serialNumber = BigInt(`0x${new X509Certificate(qseal.cert).serialNumber}`).toString();
  const signing = {
    certFile: qseal.certFile,
    keyFile: qseal.keyFile,
    algorithm: 'rsa-sha512',
    keyId: serialNumber,
    headers: ['(request-target)', 'host', 'date', 'digest', 'x-request-id'],
    addDate: true,
  };

  /** A received request is signed over its own request line and fields. */
  function assertSignedRequest({ method, url, rawHeaders, body }: SimulatedBank['requests'][number]): void {
    const fields = headerFieldsFrom(rawHeaders);
    const value = headerValue(fields, 'signature') ?? '';
    const [, keyId, names = '', signature = ''] =
      /^keyId="(\d+)",algorithm="rsa-sha512",headers="([^"]+)",signature="([^"]+)"$/.exec(value) ?? [];
    assert.equal(keyId, serialNumber, `${method} ${url}`);
    assert.equal(names, '(request-target) host date digest x-request-id');
    const lines = names.split(' ').map((name) => {
      const isTarget = name === '(request-target)';
      return `${name}: ${isTarget ? `${method.toLowerCase()} ${url}` : headerValue(fields, name)}`;
    });
    const { publicKey } = new X509Certificate(qseal.cert);
    assert.ok(
      verify('sha512', Buffer.from(lines.join('\n')), publicKey, Buffer.from(signature, 'base64')),
      lines.join(),
    );
    assert.equal(
      headerValue(fields, 'digest'),
      `SHA-512=${createHash('sha512').update(body).digest('base64')}`,
    );
    assert.match(headerValue(fields, 'date') ?? '', /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
  }

  test('gets it with writes, reads, probes and the pre-flight, over the target that is sent', async (t) => {
    const [bank, other] = [await startBank(t), await startBank(t)];
    const probe = { signing, probePath: '/probe%41/a' };
    const gateway = await startGateway(t, {
      environments: {
        active: 'sandbox',
        sandbox: { baseUrl: bank.baseUrl, ...probe },
        other: { baseUrl: `${other.baseUrl}/base/path`, ...probe },
      },
      circuit: { minimumCalls: 1, failureRate: '1%', openFor: '1s' },
    });
    const paid = await call(gateway.url, initiation);
    const path = `${transfersPath}/${JSON.parse(paid.text).paymentId}`;
    await call(gateway.url, { method: 'GET', path: `${path}/status` });
    await call(gateway.url, { method: 'DELETE', path });
    bank.injectFault({ name: 'status', status: 500 }, { times: 1 });
    await call(gateway.url, { ...initiation, requestId: randomUUID() });
    const isProbed = () => bank.requests.some(({ url }) => url.endsWith('/probe%41/a'));
    await until(10_000, 'a probe', isProbed);
    await switchEnvironment(gateway, 'other');
    assert.deepEqual(
      other.requests.map(({ url }) => url),
      ['/base/path/probe%41/a'],
    );
    for (const request of [...bank.requests, ...other.requests]) assertSignedRequest(request);
    assert.ok(bank.requests.some(({ method }) => method === 'DELETE'));
  });
});
