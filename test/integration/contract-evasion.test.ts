/** What a TPP could send to have a request reach the bank unchecked under `enforce`. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { request as requestHttp } from 'node:http';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { call, callOnce, type Reply } from '../kit/call.ts';
import {
  type ContractRequest,
  callOf,
  jsonPart,
  multipartBody,
  pain001,
  partText,
  post,
  single,
  singleBody,
  transfers,
  xml,
  xmlPart,
} from '../kit/contract-requests.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';

const scope = scopeOfAllTests();
const bank = await startBank(scope);
const contract = { requests: 'enforce', responses: 'off' };
const environments = { live: { baseUrl: bank.baseUrl, standardVersion: '1.3.11', contract } };
const gateway = await startGateway(scope, { environments });

const validText = JSON.stringify(singleBody);
const violatingText = JSON.stringify({
  ...singleBody,
  instructedAmount: { currency: 'EUR', amount: '0.00' },
});
const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le');
const withRepeated = (one: ContractRequest, name: string, value: string): ContractRequest => ({
  ...one,
  headers: [...one.headers, [name, value]],
});
const lastPart = partText({ ...jsonPart({ frequency: 'Fortnightly' }), name: 'json_standingorderType' });
const hiddenName = 'Content-Disposition: form-data; filename="a; name=other"; name="json_standingorderType"';
const parts = (more: string) => `${partText(xmlPart)}${partText(jsonPart())}${more}--AaaBbbCcc--\r\n`;

/** The bank may read each of them as a violation. */
const evasions: Readonly<Record<string, ContractRequest>> = {
  'a body that is compressed': post(transfers, gzipSync(violatingText), { 'Content-Encoding': 'gzip' }),
  'a body that only says it is compressed': post(transfers, violatingText, { 'Content-Encoding': 'gzip' }),
  'a coding in other letters behind identity': post(transfers, violatingText, {
    'Content-Encoding': 'identity, GZip',
  }),
  'JSON in UTF-16': post(transfers, utf16(violatingText), {
    'Content-Type': 'application/json; charset=utf-16',
  }),
  'JSON in UTF-8 that another charset reads differently': post(transfers, validText, {
    'Content-Type': 'application/json; charset=utf-8; charset=utf-7',
  }),
  'a byte order mark': post(transfers, `\ufeff${violatingText}`),
  'a second Content-Type': withRepeated(single({}), 'Content-Type', 'application/xml'),
  'JSON of 500 levels': post(
    transfers,
    `${validText.slice(0, -1)},"x":${'['.repeat(500)}${']'.repeat(500)}}`,
  ),
  'JSON of 1 MiB of levels': post(transfers, '['.repeat(1_000_000)),
  'XML in UTF-16 with a DOCTYPE': xml(utf16(`<!DOCTYPE a>${pain001}`)),
  'XML in UTF-7 with a DOCTYPE': xml(
    `<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE a+AD4-${pain001}`,
  ),
  'XML that its Content-Type reads in UTF-7': xml(pain001, {
    'Content-Type': 'application/xml; charset=utf-7',
  }),
  'XML with entities in entities': xml(`<!DOCTYPE a [<!ENTITY b "x"><!ENTITY c "&b;&b;">]>${pain001}`),
  'XML of 100,000 levels': xml('<a>'.repeat(100_000)),
  'a second standing order under a name in quotes': multipartBody(
    parts(`--AaaBbbCcc\r\n${hiddenName}\r\n\r\n{}\r\n`),
  ),
  'a part with two names': multipartBody(
    parts('').replace('name="json_standingorderType"', 'name="other"; name="json_standingorderType"'),
  ),
  'two boundaries': multipartBody(parts(lastPart.replace('AaaBbbCcc', 'other')), {
    'Content-Type': 'multipart/form-data; boundary=AaaBbbCcc; boundary=other',
  }),
};

describe('an enforced contract cannot be evaded with', () => {
  for (const [name, request] of Object.entries(evasions))
    test(name, async () => {
      const reached = bank.requests.length;
      const reply = await call(gateway.url, callOf(request, {}));
      assert.equal(reply.status, 400, reply.text);
      assert.equal(bank.requests.length, reached);
    });

  test('chunks and trailers', async () => {
    const reached = bank.requests.length;
    const reply = await sendInChunks(violatingText);
    assert.equal(reply.header('Penstock-Error'), 'CONTRACT_VIOLATED');
    assert.equal(bank.requests.length, reached);
  });

  test('the X-Request-ID of a request that was refused or sent', async () => {
    const id = randomUUID();
    const violating = { ...callOf(post(transfers, violatingText), {}), requestId: id };
    const valid = { ...violating, body: validText };
    const reached = bank.requests.length;
    assert.equal((await call(gateway.url, violating)).header('Penstock-Error'), 'CONTRACT_VIOLATED');
    assert.equal((await call(gateway.url, valid)).status, 201);
    assert.equal((await call(gateway.url, violating)).header('Penstock-Error'), 'DUPLICATE_MISMATCH');
    assert.equal(bank.requests.length, reached + 1);
  });

  test('many copies of one request at the same time', async () => {
    const id = randomUUID();
    const one = { ...callOf(post(transfers, violatingText), {}), requestId: id };
    const reached = bank.requests.length;
    const replies = await Promise.all(Array.from({ length: 20 }, () => callOnce(gateway.url, one)));
    for (const reply of replies) assert.notEqual(reply.status, 201);
    assert.equal(bank.requests.length, reached);
  });
});

/** Without Content-Length, in pieces of seven bytes, with a trailer. */
function sendInChunks(text: string): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const { method, path, headers = [] } = callOf(post(transfers, text), {});
  const fields = [
    ['X-Request-ID', randomUUID()],
    ...headers,
    ['Transfer-Encoding', 'chunked'],
    ['Trailer', 'Digest'],
  ];
  const sent = requestHttp(gateway.url + path, {
    method,
    headers: [['Host', 'gateway'], ...fields].flat(),
    agent: false,
  });
  sent.once('error', reject).once('response', (answer) => {
    answer.resume().once('end', () => {
      const header = (name: string) => answer.headers[name.toLowerCase()]?.toString();
      resolve({ status: answer.statusCode ?? 0, fields: [], body: Buffer.alloc(0), text: '', header });
    });
  });
  for (let at = 0; at < text.length; at += 7) sent.write(text.slice(at, at + 7));
  sent.addTrailers([['Digest', 'SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=']]);
  sent.end();
  return promise;
}
