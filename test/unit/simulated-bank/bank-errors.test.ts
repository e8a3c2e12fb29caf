/** What the bank does not grant, and in which words. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { ask, initiation, jsonOrder, multipartOrder, pay, startedBank, xmlOrder } from './kit.ts';

const products = '/berlingroup/v1/payments';
const path = `${products}/sepa-credit-transfers`;

describe('the simulated bank responds 400 FORMAT_ERROR to', () => {
  const complete = { 'Content-Type': 'application/json', 'PSU-IP-Address': '192.168.8.78' };
  const multipart = { ...initiation, 'Content-Type': 'multipart/form-data; boundary=AaaBbbCcc' };
  const pain001 = `${products}/pain.001-sepa-credit-transfers`;
  const periodic = '/berlingroup/v1/periodic-payments/pain.001-sepa-credit-transfers';
  const cases = {
    'an X-Request-ID that is no UUID': {
      path,
      headers: { ...complete, 'X-Request-ID': 'x' },
      body: jsonOrder,
    },
    'an initiation without PSU-IP-Address': { path, headers: {}, body: jsonOrder },
    'a body that is no JSON': { path, headers: initiation, body: '{' },
    'a body that is no object': { path, headers: initiation, body: '[]' },
    'JSON for an XML product': { path: pain001, headers: initiation, body: jsonOrder },
    'XML that is not closed': { path: pain001, headers: initiation, body: xmlOrder.slice(0, -15) },
    'a standing order in one part': { path: periodic, headers: multipart, body: xmlOrder },
    'a standing order without its boundary': { path: periodic, headers: initiation, body: multipartOrder },
    'a digest in no known algorithm': {
      path,
      headers: { ...initiation, Digest: 'MD5=eA==' },
      body: jsonOrder,
    },
  };
  for (const [name, { path, headers, body }] of Object.entries(cases)) {
    test(name, async (t) => {
      const bank = await startedBank(t);

      const answer = await ask(bank, 'POST', path, { headers, body });

      assert.equal(answer.status, 400);
      assert.equal(answer.json.tppMessages[0].code, 'FORMAT_ERROR');
      assert.equal(bank.payments.length, 0);
    });
  }
});

describe('the simulated bank responds 404 to', () => {
  const cases = {
    'an unknown payment': ['GET', `${path}/nobody`, 'RESOURCE_UNKNOWN'],
    'an unknown product': ['POST', `${products}/postcards`, 'PRODUCT_UNKNOWN'],
    'an unknown service': ['POST', '/berlingroup/v1/loans/sepa-credit-transfers', 'RESOURCE_UNKNOWN'],
    'another prefix': ['GET', '/psd2/v1/payments/sepa-credit-transfers/1', 'RESOURCE_UNKNOWN'],
    'a path with an empty segment': ['GET', `${path}//status`, 'RESOURCE_UNKNOWN'],
    'a path that cannot be decoded': ['GET', `${path}/%zz`, 'RESOURCE_UNKNOWN'],
    'a query': ['GET', `${path}/1/status?x=1`, 'RESOURCE_UNKNOWN'],
  } as const;
  for (const [name, [method, target, code]] of Object.entries(cases)) {
    test(name, async (t) => {
      const bank = await startedBank(t);

      const answer = await ask(bank, method, target);

      assert.equal(answer.status, 404);
      assert.equal(answer.json.tppMessages[0].code, code);
    });
  }

  test('a payment under another product than its own', async (t) => {
    const bank = await startedBank(t);
    const { json } = await pay(bank);

    const answer = await ask(bank, 'GET', `${products}/target-2-payments/${json.paymentId}`);

    assert.equal(answer.status, 404);
  });
});

test('the simulated bank lists the allowed methods in a 405 response', async (t) => {
  const bank = await startedBank(t);

  const authorisation = await ask(bank, 'PATCH', `${path}/1/authorisations/2`);
  const bulk = await ask(bank, 'PATCH', '/berlingroup/v1/bulk-payments/sepa-credit-transfers/1');

  assert.deepEqual([authorisation.status, authorisation.headers.allow], [405, 'GET, PUT']);
  assert.deepEqual([bulk.status, bulk.headers.allow], [405, 'GET, DELETE, PUT']);
  assert.equal(bulk.json.tppMessages[0].code, 'SERVICE_INVALID');
});

test('the simulated bank sends an error as problem+json if Accept lists that type first', async (t) => {
  const bank = await startedBank(t);
  const wanting = (accept: string) => ask(bank, 'GET', `${path}/nobody`, { headers: { Accept: accept } });

  const problem = await wanting('application/problem+json, application/json');
  const messages = await wanting('application/json, application/problem+json');

  assert.equal(problem.headers['content-type'], 'application/problem+json');
  assert.equal(problem.json.code, 'RESOURCE_UNKNOWN');
  assert.equal(messages.headers['content-type'], 'application/json');
});

describe('the Digest check of the simulated bank', () => {
  const digestOf = (hash: string, body: string) => createHash(hash).update(body).digest('base64');

  test('accepts a digest that matches the body, in both algorithms', async (t) => {
    const bank = await startedBank(t);

    const short = await pay(bank, { Digest: `SHA-256=${digestOf('sha256', jsonOrder)}` });
    const long = await pay(bank, { Digest: `SHA-512=${digestOf('sha512', jsonOrder)}` });

    assert.deepEqual([short.status, long.status], [201, 201]);
  });

  test('accepts the digest of zero bytes for a request without a body', async (t) => {
    const bank = await startedBank(t);
    const headers = { Digest: 'SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' };

    assert.equal((await ask(bank, 'GET', `${path}/nobody`, { headers })).status, 404);
  });

  test('responds 401 and creates no payment if one byte differs', async (t) => {
    const bank = await startedBank(t);

    const answer = await pay(bank, { Digest: `SHA-256=${digestOf('sha256', `${jsonOrder} `)}` });

    assert.equal(answer.status, 401);
    assert.equal(answer.json.tppMessages[0].code, 'SIGNATURE_INVALID');
    assert.equal(bank.payments.length, 0);
  });
});
