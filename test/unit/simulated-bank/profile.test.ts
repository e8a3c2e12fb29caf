/** The forms that a profile gives the simulated bank. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { BankProfileSettings } from '../../../src/simulated-bank/profile.ts';
import { ask, initiation, jsonOrder, startedBank, xmlOrder } from './kit.ts';

const product = 'payments/sepa-credit-transfers';

/** A bank with this profile, and a payment that was initiated there. */
async function bankLike(t: TestContext, profile: BankProfileSettings, headers = {}) {
  const bank = await startedBank(t, { profile });
  const target = `${bank.path}/${product}`;
  const initiate = (more = {}, query = '') =>
    ask(bank, 'POST', `${target}${query}`, {
      headers: { ...initiation, ...headers, ...more },
      body: jsonOrder,
    });
  const get = (path: string, more = {}) => ask(bank, 'GET', path, { headers: { ...headers, ...more } });
  return { bank, target, initiate, get, origin: new URL(bank.baseUrl).origin };
}

describe('the paths of a profile', () => {
  test('consist of base path, segment and version, each of which may be empty', async (t) => {
    const cases = [
      [{}, '/berlingroup/v1'],
      [{ segment: '' }, '/v1'],
      [{ segment: '', pathVersion: '' }, ''],
      [{ basePath: '/tpp/pis', segment: 'v6', pathVersion: 'identified2' }, '/tpp/pis/v6/identified2'],
      [{ basePath: '/psd2', pathVersion: 'v1/de' }, '/psd2/berlingroup/v1/de'],
    ] as const;
    for (const [profile, path] of cases) {
      const { bank, initiate } = await bankLike(t, profile);
      assert.equal(bank.path, path);
      assert.equal((await initiate()).status, 201);
    }
  });

  test('may have another version for some operations, which is then unknown to the others', async (t) => {
    const profile = { segment: '', pathVersion: { default: 'v1.1', startAuthorisation: 'v1' } };
    const { bank, initiate } = await bankLike(t, profile);
    const { paymentId } = (await initiate()).json;
    const start = (version: string) =>
      ask(bank, 'POST', `/${version}/${product}/${paymentId}/authorisations`);

    assert.equal((await start('v1')).status, 201);
    assert.equal((await start('v1.1')).status, 404);
    assert.equal((await ask(bank, 'GET', `/v1.1/${product}/${paymentId}/status`)).status, 200);
    assert.equal((await ask(bank, 'GET', `/v1/${product}/${paymentId}/status`)).status, 404);
  });
});

describe('the demands of a profile', () => {
  test('refuse a request without a header field, with the status and the code of the bank', async (t) => {
    const headers = [
      { name: 'Date' },
      { name: 'PSU-ID', operations: ['initiatePayment'] },
      { name: 'X-Token', status: 401, code: 'TOKEN_INVALID' },
    ] satisfies NonNullable<BankProfileSettings['requires']>['headers'];
    const { bank, target, initiate, get } = await bankLike(t, { requires: { headers } });
    const complete = { Date: 'Thu, 26 Nov 2026 00:00:00 GMT', 'PSU-ID': 'anna', 'X-Token': 'secret' };
    const { paymentId } = (await initiate(complete)).json;
    const { 'PSU-ID': _, ...later } = complete;

    const missing = [
      await initiate({ 'PSU-ID': 'anna' }),
      await initiate(later),
      await initiate({ ...complete, 'X-Token': '' }),
    ];
    const status = await get(`${target}/${paymentId}/status`, later);

    assert.deepEqual(
      missing.map((one) => [one.status, one.json.tppMessages[0].code, one.json.tppMessages[0].path]),
      [
        [400, 'FORMAT_ERROR', 'Date'],
        [400, 'FORMAT_ERROR', 'PSU-ID'],
        [401, 'TOKEN_INVALID', 'X-Token'],
      ],
    );
    assert.equal(status.status, 200);
    assert.equal(bank.payments.length, 1);
  });

  test('refuse a request without a query parameter, or with another value', async (t) => {
    const { bank, initiate } = await bankLike(t, {
      requires: { query: { bic: 'HABAEE2X', 'app-id': null } },
    });

    const statuses = [];
    for (const query of ['', '?bic=OTHER&app-id=1', '?bic=HABAEE2X', '?app-id=1&bic=HABAEE2X&more=%20'])
      statuses.push((await initiate({}, query)).status);

    assert.deepEqual(statuses, [400, 400, 400, 201]);
    assert.equal(bank.requests.at(-1)?.url, `/berlingroup/v1/${product}?app-id=1&bic=HABAEE2X&more=%20`);
  });

  test('refuse a second status read of a payment within the interval, but not of another payment', async (t) => {
    const { bank, target, initiate, get } = await bankLike(t, { requires: { statusReadEveryMs: 1000 } });
    const [one, other] = [(await initiate()).json.paymentId, (await initiate()).json.paymentId];
    const read = async (id: string) => (await get(`${target}/${id}/status`)).status;

    const statuses = [await read(one), await read(one), await read(other)];
    bank.clock.advance(1000);

    assert.deepEqual([...statuses, await read(one)], [200, 429, 200, 200]);
  });

  test('include the query of the links that the bank itself wrote', async (t) => {
    const queries = { getAuthorisation: 'correlationId={hash}' };
    const { initiate, get, origin } = await bankLike(t, { links: { queries } });
    const { href } = (await initiate()).json._links.scaStatus;
    const link = href.slice(origin.length);

    assert.match(href, /\?correlationId=[0-9A-F]{6}$/);
    assert.equal((await get(link)).status, 200);
    assert.equal((await get(link.replace(/\?.*/, ''))).status, 400);
    assert.equal((await get(link.replace(/=.*/, '=OTHER'))).status, 400);
  });
});

describe('the links of a profile', () => {
  const forms: readonly (readonly [string, string])[] = [
    ['{origin}{path}/', 'http://ORIGIN/psd2/xs2a/v1/'],
    ['{path}/', '/psd2/xs2a/v1/'],
    ['/xs2a/{version}/', '/xs2a/v1/'],
    ['/{version}/', '/v1/'],
    ['/', '/'],
    ['', ''],
    ['https://other.example/api/', 'https://other.example/api/'],
  ];
  for (const [before, expected] of forms)
    test(`begin with ${expected || 'the payment service'} for the template ${before || 'without text'}`, async (t) => {
      const profile = { basePath: '/psd2', segment: 'xs2a', links: { before } };
      const { initiate, origin } = await bankLike(t, profile);
      const { paymentId, _links } = (await initiate()).json;
      const start = expected.replace('http://ORIGIN', origin);
      assert.equal(_links.self.href, `${start}${product}/${paymentId}`);
    });

  test('have the version of the operation that they lead to', async (t) => {
    const pathVersion = { default: 'v1.1', getAuthorisation: 'v1' };
    const { initiate } = await bankLike(t, { pathVersion, links: { before: '/BBVA/{version}/' } });
    const { self, scaStatus } = (await initiate()).json._links;
    assert.match(self.href, /^\/BBVA\/v1\.1\//);
    assert.match(scaStatus.href, /^\/BBVA\/v1\/.*\/authorisations\//);
  });

  test('are plain strings if the bank writes them so', async (t) => {
    const { initiate, origin } = await bankLike(t, { links: { as: 'strings' } });
    const { paymentId, _links } = (await initiate()).json;
    assert.equal(_links.self, `${origin}/berlingroup/v1/${product}/${paymentId}`);
  });

  test('include further ones, and the page for the payer in another form', async (t) => {
    const links = {
      scaRedirect: '/oauth?id={authorisation}',
      further: { aspspCertificates: '{origin}/c', put: '{payment}' },
    };
    const { initiate, bank, origin } = await bankLike(t, { links, sca: { redirectLink: 'scaOAuth' } });
    const { _links } = (await initiate()).json;
    const [id] = bank.payments[0]?.authorisationIds ?? [];
    assert.equal(_links.scaOAuth.href, `/oauth?id=${id}`);
    assert.equal(_links.aspspCertificates.href, `${origin}/c`);
    assert.equal(_links.put.href, _links.self.href);
  });

  test('of Location may be a JSON object, on another host, and with another spelling of the product', async (t) => {
    const location = {
      as: 'json',
      before: 'https://other.example/v1/',
      product: 'SEPA_CREDIT_TRANSFERS',
    } as const;
    const { initiate, get } = await bankLike(t, { links: { location } });
    const { headers, json } = await initiate();
    const href = `https://other.example/v1/payments/SEPA_CREDIT_TRANSFERS/${json.paymentId}`;
    assert.equal(headers.location, JSON.stringify({ href }));
    assert.equal((await get(`/berlingroup/v1/payments/SEPA_CREDIT_TRANSFERS/${json.paymentId}`)).status, 200);
  });
});

describe('the ids of a profile', () => {
  test('follow a template, and an authorisation may have the id of its payment', async (t) => {
    const ids = { payment: 'PDEA{random}', authorisation: '{payment}' };
    const { initiate, get, origin } = await bankLike(t, { ids });
    const { paymentId, _links } = (await initiate()).json;
    assert.match(paymentId, /^PDEA[0-9a-f]{12}$/);
    assert.ok(_links.scaStatus.href.endsWith(`/${paymentId}/authorisations/${paymentId}`));
    assert.equal((await get(_links.scaStatus.href.slice(origin.length))).status, 200);
  });

  for (const [encoded, expected] of [
    ['none', 'a/b c;d='],
    ['necessary', 'a%2Fb%20c;d='],
    ['all', 'a%2Fb%20c%3Bd%3D'],
  ] as const)
    test(`with unusual characters are written as ${expected} in links`, async (t) => {
      const { initiate, get } = await bankLike(t, { ids: { payment: 'a/b c;d={random}', encoded } });
      const { paymentId, _links } = (await initiate()).json;
      const random = paymentId.slice(-12);
      assert.ok(_links.self.href.endsWith(`/${expected}${random}`));
      assert.equal((await get(`/berlingroup/v1/${product}/${encodeURIComponent(paymentId)}`)).status, 200);
    });
});

describe('the answers of a profile', () => {
  test('have the status, the media type and the X-Request-ID of the bank', async (t) => {
    const own = await bankLike(t, {
      answers: { initiation: 202, requestId: 'own', json: 'application/hal+json' },
    });
    const none = await bankLike(t, { answers: { requestId: 'none' } });
    const answer = await own.initiate();
    assert.equal(answer.status, 202);
    assert.equal(answer.headers['content-type'], 'application/hal+json');
    assert.match(String(answer.headers['x-request-id']), /^[0-9a-f-]{36}$/);
    assert.notEqual(answer.headers['x-request-id'], initiation['X-Request-ID']);
    assert.equal((await none.initiate()).headers['x-request-id'], undefined);
  });

  for (const [cancellation, body] of [
    [204, ''],
    [200, '{"transactionStatus":"CANC"}'],
  ] as const)
    test(`to a cancellation may be ${cancellation}, and the payment is then cancelled`, async (t) => {
      const { bank, target, initiate } = await bankLike(t, { answers: { cancellation } });
      const { paymentId } = (await initiate()).json;
      const answer = await ask(bank, 'DELETE', `${target}/${paymentId}`);
      assert.deepEqual([answer.status, answer.text], [cancellation, body]);
      assert.equal(bank.payments[0]?.transactionStatus, 'CANC');
    });

  test('to a cancellation may be 202 with a link, and the payment is cancelled after the authorisation', async (t) => {
    const { bank, target, initiate, origin } = await bankLike(t, { answers: { cancellation: 202 } });
    const { paymentId } = (await initiate()).json;
    const answer = await ask(bank, 'DELETE', `${target}/${paymentId}`);
    const link = answer.json._links.startAuthorisation.href.slice(origin.length);
    const started = await ask(bank, 'POST', link);
    bank.clock.advance(5_000);
    assert.deepEqual([answer.status, started.status], [202, 201]);
    assert.equal(bank.payments[0]?.transactionStatus, 'CANC');
  });
});

describe('the statuses of a profile', () => {
  test('may be pain.002 in UTF-16 of both byte orders, with a byte order mark, whatever the header says', async (t) => {
    for (const charset of ['utf-16le', 'utf-16be'] as const) {
      const contentType = 'text/plain';
      const { target, initiate, bank } = await bankLike(t, {
        status: { format: 'pain.002', charset, contentType },
      });
      const { paymentId } = (await initiate()).json;
      const { body, headers } = await ask(bank, 'GET', `${target}/${paymentId}/status`);
      assert.equal(headers['content-type'], contentType);
      assert.match(
        new TextDecoder(charset, { ignoreBOM: true }).decode(body),
        /^\ufeff<Document.*<GrpSts>RCVD</s,
      );
    }
  });

  test('may be JSON for a product in XML, and end with ACSC', async (t) => {
    const { bank } = await bankLike(t, { status: { format: 'json', last: 'ACSC' } });
    const path = '/berlingroup/v1/payments/pain.001-sepa-credit-transfers';
    const { paymentId } = (await ask(bank, 'POST', path, { headers: initiation, body: xmlOrder })).json;
    bank.clock.advance(1_000_000);
    const { json } = await ask(bank, 'GET', `${path}/${paymentId}/status`);
    assert.deepEqual(json, { transactionStatus: 'ACSC' });
  });
});

describe('the authorisations of a profile', () => {
  test('are redirect, decoupled or embedded, as the bank prefers, or as the TPP does if the bank offers it', async (t) => {
    const { initiate } = await bankLike(t, { sca: { approaches: ['embedded', 'redirect'] } });
    const prefer = async (headers = {}) => {
      const answer = await initiate(headers);
      return [answer.headers['aspsp-sca-approach'], Object.keys(answer.json._links).at(-2)];
    };
    assert.deepEqual(await prefer(), ['EMBEDDED', 'updatePsuAuthentication']);
    assert.deepEqual(await prefer({ 'TPP-Redirect-Preferred': 'true' }), ['REDIRECT', 'scaRedirect']);
    assert.deepEqual(await prefer({ 'TPP-Decoupled-Preferred': 'true' }), [
      'EMBEDDED',
      'updatePsuAuthentication',
    ]);
  });

  test('are started by the TPP if the bank has a link for it', async (t) => {
    const startLink = 'startAuthorisationWithPsuAuthentication';
    const { bank, initiate, origin } = await bankLike(t, { sca: { approaches: ['embedded'], startLink } });
    const { _links } = (await initiate()).json;
    const before = bank.payments[0]?.authorisationIds.length;
    const started = await ask(bank, 'POST', _links[startLink].href.slice(origin.length));
    assert.equal(before, 0);
    assert.equal(started.status, 201);
    assert.deepEqual(Object.keys(started.json._links), ['updatePsuAuthentication', 'scaStatus']);
  });
});
