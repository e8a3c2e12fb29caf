import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { optionalOperations } from '../../src/pis/operations.ts';
import { refusalOf, requestText } from '../kit/attack.ts';
import { call, jsonOf, type Reply } from '../kit/call.ts';
import { anyCanary, requestOfEachOperation } from '../kit/canaries.ts';
import { adminToken, startGatewayWithBank } from '../kit/gateway.ts';
import { lookUp, lookUpPatiently, reportOf, selfService } from '../kit/look-up.ts';
import { sendRaw } from '../kit/raw-connection.ts';
import { initiation, transfersPath } from '../kit/request.ts';
import { apiKeyOf, startTwoEnvironments } from '../kit/two-environments.ts';
import { until } from '../kit/within.ts';

/** A gateway on which `shop` has made a payment, which `rival` wants to see. */
async function startWithVictim(t: TestContext) {
  const started = await startTwoEnvironments(t, selfService);
  const { gateway, send } = started;
  const requestId = randomUUID();
  const paymentId = String(jsonOf(await send('shop', { ...initiation, requestId })).paymentId);
  const path = `${transfersPath}/${paymentId}/status`;
  await send('shop', { method: 'GET', path, requestId });
  const isRecorded = async () => (await reportOf(gateway, 'shop', requestId)).requests.length === 2;
  await until(10_000, 'the victim finds its requests', isRecorded);
  const secrets = new RegExp(`${paymentId}|shop|initiatePayment|getPaymentStatus`);
  return { ...started, requestId, paymentId, secrets };
}

const comparable = ({ status, fields, text }: Reply) => ({
  status,
  fields: fields.filter(([name]) => !['Date', 'X-Request-ID'].includes(name)),
  text,
});

/** Texts that a store, a pattern or a parser could take for the id, or for something else than an id. */
const variationsOf = (id: string): readonly string[] => [
  ...['*', '?', `${id.slice(0, 8)}*`, `*${id.slice(-8)}`, `[0-9a-f]*`, `${id.slice(0, -1)}?`, '%2a', '%3f'],
  ...[id.slice(0, -1), id.slice(1), `${id}0`, `0${id}`, `${id}${id}`, id.replaceAll('-', ''), `{${id}}`],
  ...[
    `urn:uuid:${id}`,
    `${id},${id}`,
    `${id};${id}`,
    `${id}:${id}`,
    `${id}.`,
    `${id}~`,
    `${id}@shop`,
    `shop:${id}`,
  ],
  ...[
    `${id}%00`,
    `${id}%0d%0a`,
    `${id}%0d%0aX-API-Key:%20key%20of%20shop`,
    `${id}%20`,
    `${id}%09`,
    `%20${id}`,
  ],
  ...[
    `${id}%23`,
    `${id}%2f`,
    `${id}%2f..%2f${id}`,
    `..%2f${id}`,
    `%2e%2e`,
    `${id}?tenant=shop`,
    `${id}?`,
    `${id}&tenant=shop`,
  ],
  ...[`${id}#shop`, `${id.replace('-', '%2d')}`, `%${id.charCodeAt(0).toString(16)}${id.slice(1)}`],
  ...[`${id.slice(0, -1)}\u{ff10}`, `${id}\u{200b}`, '\u{1f4a3}', `${id.slice(0, -1)}%EF%BC%90`].map((text) =>
    Buffer.from(text).toString('latin1'),
  ),
  ...[
    '',
    '/',
    `${id}/`,
    `/${id}`,
    `${id}/${id}`,
    '0'.repeat(36),
    'a'.repeat(5_000),
    `${id}${'a'.repeat(300)}`,
  ],
  ...['bytes%20shop', 'not-stored%20shop', 'requests:*', '__proto__', 'constructor', '$where', `${id}'--`],
];

/*
 * Attack: a tenant wants to see the requests of another one. It knows the X-Request-ID and the id of the payment, for example from
 * a log, and has an API key of its own.
 */
describe('look-ups of a hostile tenant', () => {
  test('H15: get the same bytes for the X-Request-ID of another tenant as for an unknown one', async (t) => {
    const { gateway, requestId, secrets } = await startWithVictim(t);
    const unknown = comparable(await lookUp(gateway, 'rival', randomUUID()));
    assert.deepEqual([unknown.status, jsonOf(unknown).tppMessages !== undefined], [404, true]);
    for (const id of [requestId, requestId.toUpperCase()])
      for (const method of ['GET', 'HEAD']) {
        const foreign = comparable(await lookUpPatiently(gateway, 'rival', id, { method }));
        assert.doesNotMatch(foreign.text, secrets);
        assert.deepEqual(foreign, method === 'HEAD' ? { ...unknown, text: '' } : unknown);
      }
  });

  test('H15: find only their own requests if both tenants have used the same X-Request-ID', async (t) => {
    const { gateway, send, requestId, paymentId } = await startWithVictim(t);
    const own = jsonOf(await send('rival', { ...initiation, requestId })).paymentId;
    assert.notEqual(own, paymentId);
    const ofRival = await reportOf(gateway, 'rival', requestId);
    assert.deepEqual([ofRival.requests.length, ofRival.initiation?.paymentId], [1, own]);
    assert.doesNotMatch(JSON.stringify(ofRival), new RegExp(paymentId));
    const ofShop = await reportOf(gateway, 'shop', requestId);
    assert.deepEqual([ofShop.requests.length, ofShop.initiation?.paymentId], [2, paymentId]);
  });

  test('H15: find nothing with crafted ids: patterns, prefixes, line ends, encodings, Unicode, long ones', async (t) => {
    const { gateway, requestId, paymentId, secrets, callCounts } = await startWithVictim(t);
    const before = callCounts();
    for (const id of [...variationsOf(requestId), paymentId, ...variationsOf(paymentId)]) {
      const key = [`X-API-Key: ${apiKeyOf('rival')}`];
      const answer = await sendRaw(gateway.port, requestText(`GET /requests/${id} HTTP/1.1`, key));
      const [status, code] = refusalOf(answer);
      assert.ok(status >= 400 && status < 500 && code !== 'none', `${status} ${code}: ${id.slice(0, 100)}`);
      assert.doesNotMatch(answer.body, secrets, id.slice(0, 100));
    }
    assert.deepEqual(callCounts(), before);
  });

  test('H15: contain nothing that came with a request, except for its X-Request-ID', async (t) => {
    const standard = { alsoOffer: optionalOperations };
    const { gateway } = await startGatewayWithBank(t, { ...selfService, standard });
    for (const request of requestOfEachOperation()) {
      const requestId = randomUUID();
      await sendRaw(gateway.port, request.replace(/(?<=X-Request-ID: ).*(?=\r)/, requestId));
      const { requests, initiation: outcome } = await reportOf(gateway, undefined, requestId);
      assert.equal(requests.length, 1);
      const withoutPayment = JSON.stringify({ requests, outcome }).replaceAll(outcome?.paymentId ?? '-', '');
      assert.doesNotMatch(withoutPayment, anyCanary);
    }
  });

  test('H15: cannot claim to be another tenant with fields of the request', async (t) => {
    const { gateway, requestId, secrets } = await startWithVictim(t);
    const attempts: readonly (readonly string[])[] = [
      [`X-API-Key: ${apiKeyOf('rival')}`, `X-API-Key: ${apiKeyOf('shop')}`],
      [`X-API-Key: ${apiKeyOf('rival')}, ${apiKeyOf('shop')}`],
      [`X_API_Key: ${apiKeyOf('shop')}`],
      [`Authorization: Bearer ${adminToken}`],
      [`X-API-Key: ${adminToken}`],
      ['Penstock-Tenant: shop', 'X-Tenant: shop', 'X-Forwarded-User: shop', 'Forwarded: for=shop'],
      ['X-SSL-Client-S-DN: CN=shop', 'Client-Cert: :c2hvcA==:', 'X-Client-Verify: SUCCESS'],
      [
        'Cookie: penstock-session=shop',
        'X-HTTP-Method-Override: GET',
        `X-Original-URL: /requests/${requestId}`,
      ],
    ];
    for (const fields of attempts) {
      for (const own of [[], [`X-API-Key: ${apiKeyOf('rival')}`]]) {
        const all = fields.some((field) => field.startsWith('X-API-Key')) ? fields : [...fields, ...own];
        const answer = await sendRaw(gateway.port, requestText(`GET /requests/${requestId} HTTP/1.1`, all));
        assert.ok([400, 401, 404, 429].includes(answer.status), `${answer.status}: ${all.join(', ')}`);
        assert.doesNotMatch(answer.body, secrets, all.join(', '));
      }
    }
  });

  test('H15: and their API key find nothing through the admin API, on either listener', async (t) => {
    const { gateway, requestId, paymentId, secrets } = await startWithVictim(t);
    const paths = [
      `/api/search?requestId=${requestId}`,
      '/api/search?tenant=shop',
      `/api/search?payment=${paymentId}`,
      `/api/decisions/${requestId}`,
    ];
    const key = apiKeyOf('rival');
    for (const path of paths) {
      const headers = [
        ['X-API-Key', key],
        ['Authorization', `Bearer ${key}`],
        ['Cookie', `penstock-session=${key}`],
      ] as const;
      const onAdmin = await call(gateway.adminUrl, { method: 'GET', path, headers });
      assert.equal(onAdmin.status, 401, path);
      const onPublic = await call(gateway.url, { method: 'GET', path, headers });
      assert.ok([400, 404].includes(onPublic.status), path);
      for (const { text } of [onAdmin, onPublic]) assert.doesNotMatch(text, secrets, path);
    }
  });

  test('H15: an operator who searches one tenant gets nothing of another, whatever the id or the name', async (t) => {
    const { gateway, send, requestId, paymentId } = await startWithVictim(t);
    await send('rival', { ...initiation, requestId: randomUUID() });
    const search = async (query: Readonly<Record<string, string>>) => {
      const path = `/api/search?${new URLSearchParams(query)}`;
      const headers = [['Authorization', `Bearer ${adminToken}`]] as const;
      const { status, text } = await call(gateway.adminUrl, { method: 'GET', path, headers });
      assert.ok([200, 400].includes(status), `${status}: ${path}`);
      if (status === 400) return [];
      const { requests } = JSON.parse(text) as { requests: readonly { tenant: string }[] };
      return requests.map(({ tenant }) => tenant);
    };
    const ofRival = async () => (await search({ tenant: 'rival' })).join();
    await until(10_000, 'the request of the rival is stored', async () => (await ofRival()) === 'rival');
    assert.deepEqual(await search({ tenant: 'shop', requestId }), ['shop', 'shop']);
    for (const tenant of [
      '*',
      'sho',
      'sho*',
      'shop*',
      'shop ',
      ' shop',
      'SHOP',
      'shop\0',
      'shop\r\n',
      'shop#2',
      'ѕhop',
      's%68op',
    ])
      assert.deepEqual(await search({ tenant }), [], tenant);
    for (const id of [requestId, ...variationsOf(requestId)])
      assert.deepEqual(await search({ tenant: 'rival', requestId: id }), [], id.slice(0, 100));
    for (const payment of [paymentId, ...variationsOf(paymentId)])
      assert.deepEqual(await search({ tenant: 'rival', payment }), [], payment.slice(0, 100));
  });
});
