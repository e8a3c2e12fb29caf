/** Links for the TPP lead to the gateway, links for the payer to the bank. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { BankOptions } from '../../src/simulated-bank/bank.ts';
import { call, jsonOf, type Reply } from '../kit/call.ts';
import { publicUrl, startGatewayWithBank } from '../kit/gateway.ts';
import { setBankResponse } from '../kit/raw-bank-response.ts';
import { initiation, statusRead } from '../kit/request.ts';

const product = 'v1/payments/sepa-credit-transfers';
const styles = ['absolute', 'relative', 'relative-without-segment', 'relative-without-base'] as const;
const locations = [
  { basePath: '', segment: 'berlingroup' },
  { basePath: '/psd2', segment: 'berlingroup' },
  { basePath: '/xs2a/bank-1', segment: 'v1/berlin-group' },
  { basePath: '/psd2', segment: '' },
] as const;
const publicUrls = [publicUrl, `${publicUrl}/banks/one`, 'http://gateway.example:8080/'];

describe('links of the bank’s API', () => {
  for (const links of styles) {
    for (const { basePath, segment } of locations) {
      for (const address of publicUrls) {
        const prefix = segment === '' ? '' : `/${segment}`;

        test(`that are ${links} below ${basePath}${prefix}/v1 are rewritten to ${address}`, async (t) => {
          const options: BankOptions = { links, basePath, segment };
          const sections = { listen: { publicUrl: address }, standard: { segment } };
          const { bank, gateway } = await startGatewayWithBank(t, sections, options);
          const publicBase = `${address.replace(/\/$/, '')}${prefix}/${product}`;

          const created = await call(gateway.url, { ...initiation, path: `${prefix}/${product}` });

          const { paymentId, authorisationIds: [sca] = [] } = bank.payments[0] ?? {};
          assert.equal(created.status, 201);
          assert.equal(created.header('Location'), `${publicBase}/${paymentId}`);
          assert.deepEqual(linksOf(created), {
            self: `${publicBase}/${paymentId}`,
            status: `${publicBase}/${paymentId}/status`,
            scaStatus: `${publicBase}/${paymentId}/authorisations/${sca}`,
            scaRedirect: `https://sca.bank.example/authorise/${sca}`,
          });
        });
      }
    }
  }

  test('are rewritten without the segment if they are relative; absolute ones would reach another URL', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t, {}, { basePath: '/psd2' });
    const path = 'v1/payments/p/1';
    const status = `${bank.baseUrl}/${path}/status`;
    const body = JSON.stringify({
      paymentId: '1',
      _links: { self: { href: `/psd2/${path}` }, status: { href: status } },
    });
    const headers = [
      ['Content-Type', 'application/json'],
      ['Location', `/psd2/${path}`],
    ] as const;
    setBankResponse(bank, { status: '201 Created', headers, body });
    const created = await call(gateway.url, initiation);
    const self = `${publicUrl}/berlingroup/${path}`;
    assert.equal(created.header('Location'), self);
    assert.deepEqual(linksOf(created), { self, status });
  });

  test('can be followed after they are rewritten, if they lead to one of the eight operations', async (t) => {
    const { gateway } = await startGatewayWithBank(t, {}, { basePath: '/psd2', links: 'relative' });
    const { self, status, scaStatus } = linksOf(await call(gateway.url, initiation));
    for (const link of [self, status, scaStatus]) {
      assert.equal(
        (await call(gateway.url, { method: 'GET', path: new URL(link ?? '').pathname })).status,
        200,
      );
    }
  });
});

describe('a URL is not rewritten', () => {
  const foreign = (origin: string) => ({
    scaRedirect: { href: `${origin}/berlingroup/v1/payments/of-the-payer` },
    scaOAuth: { href: `${origin}/berlingroup/v1/.well-known/oauth-authorization-server` },
    elsewhere: { href: 'https://other.example/berlingroup/v1/payments/1' },
    otherPort: { href: 'http://127.0.0.1:1/berlingroup/v1/payments/1' },
    otherScheme: { href: `${origin.replace('http:', 'https:')}/berlingroup/v1/payments/1` },
    otherApi: { href: `${origin}/other/v1/payments/1` },
    otherVersion: { href: `${origin}/berlingroup/v2/payments/1` },
    prefixOnly: { href: `${origin}/berlingroup/v10/payments/1` },
    withPassword: { href: `${origin.replace('//', '//a:b@')}/berlingroup/v1/payments/1` },
  });

  test("if it is for the payer, on another host, or outside of the bank's API", async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const body = JSON.stringify(
      { _links: foreign(bank.baseUrl), href: `${bank.baseUrl}/berlingroup/v1/` },
      null,
      1,
    );
    setBankResponse(bank, { headers: [['Content-Type', 'application/json']], body });
    assert.equal((await call(gateway.url, statusRead)).text, body);
  });

  test('if the bank uses another host name than baseUrl', async (t) => {
    const options = { publicOrigin: 'https://other-name.bank.example' };
    const { gateway } = await startGatewayWithBank(t, {}, options);
    const { self } = linksOf(await call(gateway.url, initiation));
    assert.match(self ?? '', /^https:\/\/other-name\.bank\.example\/berlingroup\/v1\//);
  });

  test('in Location if it is outside of the API, while Content-Location is rewritten', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const headers = [
      ['Location', 'https://www.bank.example/maintenance'],
      ['Content-Location', '/berlingroup/v1/payments/p/1?view=full#top'],
    ] as const;
    setBankResponse(bank, { status: '503 Service Unavailable', headers, body: '' });
    const reply = await call(gateway.url, statusRead);
    assert.equal(reply.header('Location'), 'https://www.bank.example/maintenance');
    assert.equal(reply.header('Content-Location'), `${publicUrl}/berlingroup/v1/payments/p/1?view=full#top`);
  });
});

describe('a body with rewritten links', () => {
  test('keeps every other byte, including unusual white space and repeated members', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const body = (href: string) =>
      `\r\n{ "a":1 ,"a" : 1.0e0,\t"name":"M\u00c3\u00bcller \\/ \\ud83d",\n"_links":{"self" : { "href":"${href}","x":[ ] }}} `;
    setBankResponse(bank, {
      headers: [['Content-Type', 'application/json']],
      body: body('/berlingroup/v1/payments/p/1'),
    });
    const reply = await call(gateway.url, statusRead);
    assert.equal(reply.body.toString('latin1'), body(`${publicUrl}/berlingroup/v1/payments/p/1`));
    assert.equal(reply.header('Content-Length'), String(reply.body.length));
  });

  test('may be an error of the bank', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const body = '{"code":"X","_links":{"startAuthorisation":{"href":"/v1/payments/p/1/authorisations"}}}';
    setBankResponse(bank, {
      status: '400 Bad Request',
      headers: [['Content-Type', 'application/problem+json']],
      body,
    });
    const { startAuthorisation } = linksOf(await call(gateway.url, statusRead));
    assert.equal(startAuthorisation, `${publicUrl}/berlingroup/v1/payments/p/1/authorisations`);
  });
});

describe('a compressed response', () => {
  const withLink = '{"_links":{"self":{"href":"/v1/payments/p/1"}}}';
  const headers = [
    ['Content-Type', 'application/json'],
    ['Content-Encoding', 'gzip'],
    ['ETag', '"of-these-bytes"'],
  ] as const;

  test('with links is decompressed and rewritten, without fields that describe the original bytes', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    setBankResponse(bank, { headers, body: gzipSync(withLink).toString('latin1') });
    const reply = await call(gateway.url, { ...statusRead, headers: [['Accept-Encoding', 'gzip']] });
    assert.equal(reply.text, withLink.replace('/v1/', `${publicUrl}/berlingroup/v1/`));
    assert.equal(reply.header('Content-Encoding'), undefined);
    assert.match(reply.header('ETag') ?? '', /^W\/"penstock-/, 'the tag of the gateway describes the status');
    assert.equal(reply.header('Content-Length'), String(reply.body.length));
  });

  test('without links keeps its bytes and its coding', async (t) => {
    const { bank, gateway } = await startGatewayWithBank(t);
    const compressed = gzipSync('{"transactionStatus":"ACCP"}');
    setBankResponse(bank, { headers, body: compressed.toString('latin1') });
    const reply = await call(gateway.url, statusRead);
    assert.deepEqual(reply.body, compressed);
    assert.equal(reply.header('Content-Encoding'), 'gzip');
    assert.equal(reply.header('ETag'), '"of-these-bytes"');
  });
});

function linksOf(reply: Reply): Readonly<Record<string, string>> {
  const { _links: links = {} } = jsonOf(reply);
  return Object.fromEntries(
    Object.entries(links as Record<string, { href: string }>).map(([name, { href }]) => [name, href]),
  );
}
