/** Ids of real banks outside of the strict set: accepted if the bank has issued them, and sent as the bank spells them. */

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { describe, test } from 'node:test';
import { call, jsonOf, type Reply } from '../kit/call.ts';
import { newMigratedPostgres } from '../kit/database.ts';
import { publicUrl, type Sections, startGateway } from '../kit/gateway.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { type StubRequest, type StubResponse, startStubBank } from '../kit/stub-bank.ts';
import type { TestScope } from '../kit/test-scope.ts';
import { outcomeOf } from '../kit/writes.ts';

const product = '/payments/sepa-credit-transfers';
const json = ['Content-Type', 'application/json'] as const;

const unusual = [
  ['q7Hc2m/Zr+8VwA==', 'q7Hc2m%2FZr%2B8VwA%3D%3D'],
  ['q7Hc2m/Zr+8VwA==', 'q7Hc2m%2fZr+8VwA=='],
  ['ORD;2026;17', 'ORD;2026;17'],
  ['ORD;2026;17', 'ORD%3B2026%3B17'],
  ['a=b', 'a%3Db'],
  ['Überweisung 7', '%C3%9Cberweisung%207'],
  ["{it's} (1) & more?", "%7Bit's%7D%20(1)%20&%20more%3F"],
  ['7'.repeat(1_024), '7'.repeat(1_024)],
] as const;

const databases = {
  SQLite: { skip: false, state: async () => ({}), outcomes: ['201', '201 replayed'] },
  PostgreSQL: {
    skip: skipWithoutPostgres,
    state: async () => ({ postgres: await newMigratedPostgres() }),
    outcomes: ['504 OUTCOME_UNKNOWN', '409 DUPLICATE_IN_DOUBT'],
  },
};

/** A bank that issues one payment id, and spells it so in its links. */
function bankWith(id: string, segment: string, authorisation = 'auth-1') {
  return ({ method, path }: StubRequest): StubResponse => {
    const self = `/berlingroup/v1${product}/${segment}`;
    const _links = {
      self: { href: self },
      status: `${self}/status`,
      scaStatus: `${self}/authorisations/${authorisation}?correlationId=CN4KNJ`,
    };
    if (path.endsWith('/status')) return { headers: [json], body: '{"transactionStatus":"RCVD"}' };
    if (path.includes('/authorisations/')) return { headers: [json], body: '{"scaStatus":"received"}' };
    if (method === 'DELETE') return { status: 204 };
    if (method === 'POST')
      return {
        status: 201,
        headers: [json],
        body: JSON.stringify({ paymentId: id, transactionStatus: 'RCVD', _links }),
      };
    return { headers: [json], body: '{}' };
  };
}

async function start(t: TestScope, respond: (request: StubRequest) => StubResponse, sections: Sections = {}) {
  const bank = await startStubBank(t, respond);
  const gateway = await startGateway(t, {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    ...sections,
  });
  return { bank, gateway };
}

const get = (path: string, headers: readonly (readonly [string, string])[] = []) => ({
  method: 'GET',
  path,
  headers,
});
const linksIn = (reply: Reply) =>
  jsonOf(reply)._links as {
    readonly self: { readonly href: string };
    readonly status: string;
    readonly scaStatus: string;
  };
const pathOf = (link: string) => {
  assert.ok(link.startsWith(publicUrl), link);
  return link.slice(publicUrl.length);
};

describe('a payment id outside of the strict set', () => {
  for (const [id, segment] of unusual)
    test(`${id.slice(0, 20)}, spelled ${segment.slice(0, 30)}, is usable by its links and percent-encoded, and reaches the bank as it spells it`, async (t) => {
      const { bank, gateway } = await start(t, bankWith(id, segment));
      const { self, status, scaStatus } = linksIn(await call(gateway.url, initiation));
      const own = `${transfersPath}/${encodeURIComponent(id)}`;
      for (const path of [pathOf(self.href), pathOf(status), pathOf(scaStatus), own, `${own}/status?fresh`])
        assert.equal((await call(gateway.url, get(path))).status, 200, path);
      assert.equal((await call(gateway.url, { method: 'DELETE', path: own })).status, 204);
      const atBank = `/berlingroup/v1${product}/${segment}`;
      assert.deepEqual(
        bank.requests.slice(1).map(({ path }) => path),
        [
          atBank,
          `${atBank}/status`,
          `${atBank}/authorisations/auth-1?correlationId=CN4KNJ`,
          atBank,
          `${atBank}/status?fresh`,
          atBank,
        ],
      );
    });

  test('that the bank encodes without need is usable by its links, and without the encoding', async (t) => {
    const { bank, gateway } = await start(t, bankWith('a~b.c', 'a%7Eb%2Ec'));
    const { self, status } = linksIn(await call(gateway.url, initiation));
    for (const path of [pathOf(self.href), pathOf(status), `${transfersPath}/a~b.c`])
      assert.equal((await call(gateway.url, get(path))).status, 200, path);
    const sent = bank.requests.slice(1).map(({ path }) => path.slice(transfersPath.length));
    // The last one is the same resource (RFC 3986 section 2.3), and is sent as the bank spells it.
    assert.deepEqual(sent, ['/a%7Eb%2Ec', '/a%7Eb%2Ec/status', '/a%7Eb%2Ec']);
  });

  test('is unknown until the bank has issued it, for every operation', async (t) => {
    const { bank, gateway } = await start(t, bankWith('a/b', 'a%2Fb'));
    const usual = await call(gateway.url, get(`${transfersPath}/1`));
    assert.equal(usual.status, 200, 'one environment and one tenant: the bank knows its payments');
    for (const [method, rest] of [
      ['GET', ''],
      ['GET', '/status'],
      ['DELETE', ''],
      ['POST', '/authorisations'],
      ['GET', '/authorisations'],
      ['GET', '/authorisations/1'],
    ] as const) {
      const reply = await call(gateway.url, { method, path: `${transfersPath}/a%2Fb${rest}` });
      assert.equal(reply.header('Penstock-Error'), 'PAYMENT_UNKNOWN', method + rest);
    }
    assert.equal(bank.requests.length, 1);
  });

  test('that is never acceptable is not usable, although the bank has issued it', async (t) => {
    for (const id of ['..', 'a/../b', 'a%2Fb', 'a\u0000b', '.', '7'.repeat(1_025)]) {
      const { bank, gateway } = await start(t, bankWith(id, encodeURIComponent(id)));
      const created = await call(gateway.url, initiation);
      assert.equal(created.status, 201);
      assert.equal(
        linksIn(created).self.href,
        `/berlingroup/v1${product}/${encodeURIComponent(id)}`,
        'stays as the bank sent it',
      );
      const reply = await call(gateway.url, get(`${transfersPath}/${encodeURIComponent(id)}/status`));
      assert.equal(reply.header('Penstock-Error'), 'PATH_MALFORMED');
      assert.equal(bank.requests.length, 1);
    }
  });

  for (const [database, { skip, state, outcomes }] of Object.entries(databases))
    test(`that is too long for an index is sent once: on ${database}, the outcomes are ${outcomes.join(', ')}`, {
      skip,
    }, async (t) => {
      const id = randomBytes(2_250).toString('base64url');
      const { bank, gateway } = await start(t, bankWith(id, id), { state: await state() });
      const requestId = randomUUID();
      const pay = async () => outcomeOf(await call(gateway.url, { ...initiation, requestId }));
      assert.deepEqual([await pay(), await pay()], outcomes);
      assert.equal(bank.requests.length, 1);
    });

  test('of one tenant is for another tenant like an unknown payment, byte for byte', async (t) => {
    const clients = ['shop', 'rival'].map((name) => ({ name, apiKeySha256: keyHashes[name] }));
    const { bank, gateway } = await start(t, bankWith('a/b', 'a%2Fb', 'x%2Fy'), { clients });
    const as = (name: string) => [['X-API-Key', `key-of-${name}`]] as const;
    const requestId = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';
    const ask = (path: string, name: string) => call(gateway.url, { ...get(path, as(name)), requestId });
    const headers = [...initiation.headers, ...as('shop')];
    assert.equal((await call(gateway.url, { ...initiation, headers })).status, 201);
    for (const rest of ['', '/status', '/authorisations/x%2Fy', '?a=b']) {
      assert.equal((await ask(`${transfersPath}/a%2Fb${rest}`, 'shop')).status, 200);
      const foreign = await ask(`${transfersPath}/a%2Fb${rest}`, 'rival');
      const unknown = await ask(`${transfersPath}/c%2Fd${rest}`, 'rival');
      const usual = await ask(`${transfersPath}/unknown${rest}`, 'rival');
      assert.equal(foreign.status, 404);
      for (const reply of [unknown, usual]) assert.deepEqual(comparable(reply), comparable(foreign));
    }
    assert.equal(bank.requests.length, 1 + 4, 'no request of the other tenant reached the bank');
  });
});

describe('an authorisation id outside of the strict set', () => {
  test('is usable after a link, an answer or a list of the bank has named it', async (t) => {
    const authorisations = `${transfersPath}/1/authorisations`;
    const respond = ({ method, path }: StubRequest): StubResponse => {
      const headers = [json];
      if (path === `${transfersPath}/1`)
        return { headers, body: `{"_links":{"scaStatus":"${authorisations}/link%2f1"}}` };
      if (path !== authorisations) return { headers, body: '{"scaStatus":"received"}' };
      return method === 'POST'
        ? { status: 201, headers, body: '{"authorisationId":"start/1","scaStatus":"received"}' }
        : { headers, body: '{"authorisationIds":["list/1","(1)","usual"]}' };
    };
    const { bank, gateway } = await start(t, respond);
    const errorOf = async (id: string) =>
      (await call(gateway.url, get(`${authorisations}/${id}`))).header('Penstock-Error');
    const ids = ['link%2F1', 'start%2F1', 'list%2F1', '(1)'];
    for (const id of ids) assert.equal(await errorOf(id), 'PAYMENT_UNKNOWN');
    await call(gateway.url, get(`${transfersPath}/1`));
    await call(gateway.url, { ...initiation, path: authorisations, body: '{}' });
    await call(gateway.url, get(authorisations));
    const before = bank.requests.length;
    for (const id of [...ids, 'usual']) assert.equal(await errorOf(id), undefined, id);
    assert.equal(await errorOf('other%2F1'), 'PAYMENT_UNKNOWN');
    assert.deepEqual(
      bank.requests.slice(before).map(({ path }) => path.slice(authorisations.length + 1)),
      ['link%2f1', 'start%2F1', 'list%2F1', '(1)', 'usual'],
    );
  });

  test('keeps the product of the initiation in the record of its payment', async (t) => {
    const sections = { environments: { sandbox: { contract: { requests: 'enforce', responses: 'off' } } } };
    const respond = ({ method, path }: StubRequest): StubResponse => {
      if (path.endsWith('/authorisations')) return { headers: [json], body: '{"authorisationIds":["a/1"]}' };
      return method === 'POST'
        ? { status: 201, headers: [json], body: '{"paymentId":"1","transactionStatus":"RCVD"}' }
        : { headers: [json], body: '{}' };
    };
    const bank = await startStubBank(t, respond);
    const sandbox = { ...sections.environments.sandbox, baseUrl: bank.baseUrl };
    const gateway = await startGateway(t, { environments: { sandbox } });
    assert.equal((await call(gateway.url, initiation)).status, 201);
    await call(gateway.url, get(`${transfersPath}/1/authorisations`));
    const other = await call(gateway.url, get(`${transfersPath.replace('sepa', 'instant-sepa')}/1/status`));
    assert.equal(other.header('Penstock-Error'), 'CONTRACT_VIOLATED', other.text);
  });
});

/** `printf %s key-of-NAME | sha256sum`. */
const keyHashes: Readonly<Record<string, string>> = {
  shop: '625ec9a8bfc54cc62de07d58b187d9e967e1fbcaa61cf9acd03ce7995c261a8d',
  rival: 'ac5a6e38f00f72be37cf2dc36addeab5ea3f38d6be9637c3a262ffb3103e871a',
};

/** What a TPP can compare. */
const comparable = ({ status, fields, text }: Reply) => ({
  status,
  text,
  fields: fields.filter(([name]) => name.toLowerCase() !== 'date'),
});
