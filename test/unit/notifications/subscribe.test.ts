import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type SubscribeDependencies, subscribe } from '../../../src/notifications/subscribe.ts';
import { createSubscriptionStore, subscriptionIdOf } from '../../../src/notifications/subscription-store.ts';
import { type HeaderField, type HeaderFields, headerValue, headerValues } from '../../../src/pis/headers.ts';
import type { PisResponse, RoutedRequest } from '../../../src/request/messages.ts';
import { DatabaseError } from '../../../src/store/database.ts';
import { createSubscriptionTable, noSubscriptions } from '../../../src/store/subscriptions.ts';
import { newMemoryDatabase } from '../../kit/database.ts';
import { environmentOf } from '../../kit/environment.ts';
import { withMeaning } from '../../kit/meaning.ts';
import { unreadable } from '../../kit/subscription-table.ts';
import { authorisation, cancellation, initiation, preferred, requestOf, uri } from './write-fixture.ts';

const created: PisResponse = {
  status: 201,
  headers: [['Content-Type', 'application/json']],
  body: Buffer.from('{"paymentId":"payment","transactionStatus":"RCVD"}'),
  json: { paymentId: 'payment', transactionStatus: 'RCVD' },
  servedFrom: 'bank',
  environment: 'sandbox',
};

const accepted = withMeaning(requestOf(initiation).operation, created);

const id = subscriptionIdOf('tenant', 'sandbox payment');

function createStage(overrides: Partial<SubscribeDependencies> = {}) {
  const table = createSubscriptionTable(newMemoryDatabase());
  const store = createSubscriptionStore(table);
  const reasons: unknown[] = [];
  const stage = subscribe({
    urlsOf: (client) => (client === 'client' ? ['https://tpp.example/payments'] : undefined),
    store,
    paymentKeyOf: (environmentId, paymentId) => `${environmentId} ${paymentId}`,
    mayStoreCredentials: true,
    canPoll: () => true,
    canReadAuthorisations: () => true,
    isFull: async () => false,
    firstReadMs: () => 1_000,
    keepForMs: 3_600_000,
    log: (_level, _message, fields) => void reasons.push(fields?.why),
    ...overrides,
  });
  async function send(request: RoutedRequest, response: PisResponse = created) {
    let forwarded: HeaderFields = [];
    const answer = await stage(request, async (passedOn) => {
      forwarded = passedOn.headers;
      return withMeaning(request.operation, response);
    });
    return {
      answer,
      forwarded: forwarded.filter(([name]) => /^tpp-notification/i.test(name)),
      support: headerValue(answer.headers, 'aspsp-notification-support'),
      content: headerValue(answer.headers, 'aspsp-notification-content'),
      stored: await store.read(id),
      reasons,
    };
  }
  return { send, table };
}

describe('the stage that subscribes', () => {
  for (const [what, line, response] of [
    ['an initiation', initiation, created],
    ['a cancellation', cancellation, { ...created, status: 204, body: Buffer.alloc(0), json: undefined }],
    ['an authorisation', authorisation, { ...created, json: undefined, body: Buffer.from('{}') }],
  ] as const)
    test(`stores a subscription for ${what}, and keeps the two headers back`, async () => {
      const { send, table } = createStage();
      const { support, content, forwarded, stored } = await send(requestOf(line, uri, preferred), response);
      assert.deepEqual([support, content, forwarded], ['true', 'status=LAST', []]);
      assert.deepEqual(
        [
          stored?.tenant,
          stored?.environment,
          stored?.client,
          stored?.paymentId,
          stored?.url,
          stored?.content,
        ],
        ['tenant', 'sandbox', 'client', 'payment', 'https://tpp.example/payments/1', 'LAST'],
      );
      assert.equal(headerValue(stored?.headers ?? [], 'authorization'), 'Bearer token');
      assert.equal(stored?.status?.code, line === initiation ? 'RCVD' : undefined);
      const { active, overdue } = (await table.count()).get('tenant') ?? noSubscriptions;
      assert.deepEqual([active, overdue], [1, 0]);
    });

  test('answers false for a URL that is not allowed, malformed or repeated, and the payment continues', async () => {
    for (const headers of [
      [['TPP-Notification-URI', 'https://evil.example/payments']],
      [['TPP-Notification-URI', 'https://tpp.example/payments-of-others']],
      [['TPP-Notification-URI', 'nonsense']],
      [uri, uri],
    ] as const) {
      const { answer, support, content, forwarded, stored, reasons } = await createStage().send(
        requestOf(initiation, ...headers),
      );
      assert.deepEqual([answer.status, answer.body], [201, created.body]);
      assert.deepEqual(reasons, ['TPP-Notification-URI is not below one of clients[].notifications.urls']);
      assert.deepEqual([support, content, forwarded, stored], ['false', undefined, [], undefined]);
    }
  });

  test('changes nothing for other clients, and for requests without the header', async () => {
    const request = requestOf(initiation, uri, preferred);
    const other = await createStage({ urlsOf: () => undefined }).send(request);
    assert.deepEqual([other.answer, other.forwarded], [accepted, [uri, preferred]]);
    const without = await createStage().send(requestOf(initiation, preferred));
    assert.deepEqual([without.answer, without.forwarded], [accepted, [preferred]]);
  });

  test('passes both headers on, and subscribes to nothing, if the signature of the TPP covers one of them', async () => {
    for (const name of ['tpp-notification-uri', 'TPP-Notification-Content-Preferred']) {
      const signature: HeaderFields[number] = [
        'Signature',
        `keyId="SN=1,CA=2",algorithm="rsa-sha256",headers="digest x-request-id ${name}",signature="abc="`,
      ];
      const sent = await createStage().send(requestOf(initiation, uri, preferred, signature));
      assert.deepEqual([sent.answer, sent.forwarded, sent.stored], [accepted, [uri, preferred], undefined]);
    }
    const other: HeaderFields[number] = ['Signature', 'headers="digest x-request-id",signature="abc="'];
    assert.equal((await createStage().send(requestOf(initiation, uri, other))).support, 'true');
  });

  for (const [what, status, body] of [
    ['an error of the bank', 400, '{}'],
    ['a refusal with 200', 200, '{"transactionStatus":"RJCT"}'],
    ['an answer that leaves the outcome in doubt', 201, '{}'],
  ] as const)
    test(`adds nothing to ${what}`, async () => {
      const response = { ...created, status, json: undefined, body: Buffer.from(body) };
      const { answer, support, stored } = await createStage().send(requestOf(initiation, uri), response);
      assert.deepEqual([answer.body, support, stored], [response.body, undefined, undefined]);
    });

  test('replaces what the bank says about its own notifications', async () => {
    const headers: HeaderFields = [
      ['ASPSP-Notification-Support', 'true'],
      ['aspsp-notification-content', 'status=SCA'],
    ];
    const { answer } = await createStage().send(requestOf(initiation, uri), { ...created, headers });
    assert.deepEqual(headerValues(answer.headers, 'aspsp-notification-content'), ['status=PROCESS']);
    assert.deepEqual(headerValues(answer.headers, 'aspsp-notification-support'), ['true']);
  });

  for (const [why, reason, overrides] of [
    ['a token cannot be stored safely', /state\.encryptionKeyFile/, { mayStoreCredentials: false }],
    ['the gateway cannot read the status', /signing is not set/, { canPoll: () => false }],
  ] as const)
    test(`answers false if ${why}, and logs it`, async () => {
      const { send } = createStage(overrides);
      const { support, stored, reasons } = await send(requestOf(initiation, uri));
      assert.deepEqual([support, stored], ['false', undefined]);
      assert.match(String(reasons), reason);
    });

  test('answers false if the fields of the reads are longer than those that are stored, and logs it', async () => {
    const token: HeaderField = ['Authorization', 'a'.repeat(8_192)];
    const { support, stored, reasons } = await createStage().send(requestOf(initiation, uri, token));
    assert.deepEqual([support, stored], ['false', undefined]);
    assert.match(String(reasons), /exceed 8192 bytes/);
  });

  for (const setting of ['callerHeaders', 'pollHeaders'] as const)
    test(`keeps the fields that ${setting} names, if they can be stored encrypted`, async () => {
      const environment = environmentOf({ [setting]: ['x-bic'] });
      const request = () => ({
        ...requestOf(initiation, uri, ['X-Bic', 'GENODEF1S08'], ['X-Other', '1']),
        environment,
      });
      const { stored } = await createStage().send(request());
      assert.deepEqual(
        stored?.headers.filter(([name]) => name.startsWith('X-')),
        [['X-Bic', 'GENODEF1S08']],
      );

      const withoutKey = await createStage({ mayStoreCredentials: false }).send(request());
      assert.deepEqual([withoutKey.support, withoutKey.stored], ['false', undefined]);
      assert.match(String(withoutKey.reasons), /callerHeaders and pollHeaders .* state\.encryptionKeyFile/);
    });

  test('answers false if the subscription cannot be stored, and the payment continues', async () => {
    const store = {
      read: async () => undefined,
      change: () => Promise.reject(new DatabaseError('it is away', 'none')),
      replace: () => Promise.reject(new DatabaseError('it is away', 'none')),
    };
    const { answer, support } = await createStage({ store }).send(requestOf(initiation, uri));
    assert.deepEqual([answer.status, support], [201, 'false']);
  });

  test('records the status of the response, whether or not a link in it was rewritten', async () => {
    const { send } = createStage();
    const { stored } = await send(requestOf(initiation, uri), { ...created, json: undefined });
    assert.equal(stored?.status?.code, 'RCVD');
  });

  test('ends the subscription of a payment that was rejected at once', async () => {
    const { send, table } = createStage({ firstReadMs: () => undefined });
    const rejected = { paymentId: 'payment', transactionStatus: 'RJCT' };
    await send(requestOf(initiation, uri), { ...created, json: rejected });
    const due = await table.take('read', [{ tenant: 'tenant', environment: 'sandbox' }], 1, 1_000);
    assert.deepEqual(
      due.map((one) => one.id),
      [id],
    );
  });

  test('a request after the first one begins with a higher number if an earlier subscription may have ended', async () => {
    assert.equal((await createStage().send(requestOf(initiation, uri))).stored?.sequence, 0);
    const { stored } = await createStage().send(requestOf(cancellation, uri));
    assert.ok((stored?.sequence ?? 0) > 1_700_000_000);
  });

  test('replaces a subscription that cannot be decrypted', async () => {
    const { send, table } = createStage();
    await table.write(undefined, {
      id,
      tenant: 'tenant',
      environment: 'sandbox',
      paymentId: 'payment',
      text: unreadable,
      isFailing: false,
      deadSinceMs: undefined,
      failedEndpoint: undefined,
    });
    const { support, stored } = await send(requestOf(initiation, uri));
    assert.deepEqual([support, stored?.url], ['true', 'https://tpp.example/payments/1']);
  });

  test('a fault of the gateway does not change the response to the payment', async () => {
    const { answer, support } = await createStage({
      canPoll() {
        throw new TypeError('fault');
      },
    }).send(requestOf(initiation, uri));
    assert.deepEqual([answer.status, answer.body, support], [201, created.body, 'false']);
  });

  test('a later request replaces URL and content, and the numbers continue', async () => {
    const { send } = createStage();
    const first = await send(requestOf(initiation, uri));
    const other: HeaderFields[number] = ['TPP-Notification-URI', 'https://tpp.example/payments/2'];
    const second = await send(requestOf(authorisation, other, preferred), created);
    assert.deepEqual(
      [second.stored?.id, second.stored?.url, second.stored?.content],
      [first.stored?.id, 'https://tpp.example/payments/2', 'LAST'],
    );
    assert.equal(second.stored?.status?.code, 'RCVD');
  });

  test('a dead letter is kept as long as the new subscription', async () => {
    const store = createSubscriptionStore(createSubscriptionTable(newMemoryDatabase()));
    const { send } = createStage({ store });
    await send(requestOf(initiation, uri));
    const message = {
      id: 'm',
      sequence: 1,
      transactionStatus: 'ACTC',
      final: false,
      since: 0,
      attempts: 9,
      failedAttempts: 9,
    };
    await store.change(
      id,
      (current) => current && { subscription: { ...current, message: { ...message, deadSince: 1 } } },
    );
    await send(requestOf(authorisation, uri), created);
    const renewed = await store.read(id);
    assert.ok((renewed?.message?.deadSince ?? 0) > Date.now() - 60_000);
  });

  test('answers false for another payment of a tenant that has too many, and true for one that is subscribed', async () => {
    const { send } = createStage();
    await send(requestOf(initiation, uri));
    const full = { isFull: async () => true };
    const { answer, support, stored } = await createStage(full).send(requestOf(initiation, uri));
    assert.deepEqual([answer.status, support, stored], [201, 'false', undefined]);

    const store = createSubscriptionStore(createSubscriptionTable(newMemoryDatabase()));
    await createStage({ store }).send(requestOf(initiation, uri));
    const again = await createStage({ store, ...full }).send(requestOf(authorisation, uri), created);
    assert.equal(again.support, 'true');
  });
});

describe('the stage that subscribes to authorisations', () => {
  const sca: HeaderFields[number] = ['TPP-Notification-Content-Preferred', 'status=SCA,LAST'];
  const started = (scaStatus = 'received'): PisResponse => {
    const body = { scaStatus, authorisationId: 'auth-1', _links: {} };
    return { ...created, json: body, body: Buffer.from(JSON.stringify(body)) };
  };
  const idsOf = (
    stored:
      | { readonly authorisations?: readonly { readonly id?: string | undefined }[] | undefined }
      | undefined,
  ) => stored?.authorisations?.map(({ id }) => id);

  test('stores the authorisation that is started, and since when', async () => {
    const before = Date.now();
    const { content, stored } = await createStage().send(requestOf(authorisation, uri, sca), started());
    assert.equal(content, 'status=SCA,LAST');
    assert.deepEqual(stored?.authorisations, [
      {
        type: 'authorisations',
        id: 'auth-1',
        scaStatus: 'received',
        reported: 'received',
        since: stored?.authorisedAt,
      },
    ]);
    assert.ok((stored?.authorisedAt ?? 0) >= before);
  });

  test('adds an authorisation that starts later, without the headers, in a cancellation as well', async () => {
    const { send } = createStage();
    await send(requestOf(initiation, uri, sca));
    const { answer, stored } = await send(requestOf(authorisation), started());
    assert.deepEqual(
      [headerValue(answer.headers, 'aspsp-notification-support'), idsOf(stored)],
      [undefined, ['auth-1']],
    );
    const implicit = {
      transactionStatus: 'ACTC',
      _links: { scaRedirect: { href: 'https://bank.example/1' } },
    };
    const cancelled = await send(requestOf(cancellation), { ...created, status: 202, json: implicit });
    assert.deepEqual(idsOf(cancelled.stored), ['auth-1', undefined]);
  });

  test('records the time of an authorisation for all contents, and authorisations only for SCA', async () => {
    const { send } = createStage();
    await send(requestOf(initiation, uri, preferred));
    const { stored } = await send(requestOf(authorisation), started());
    assert.deepEqual([typeof stored?.authorisedAt, stored?.authorisations], ['number', undefined]);
  });

  test('creates no subscription for an authorisation alone, and ignores one that was refused', async () => {
    const { send } = createStage();
    assert.equal((await send(requestOf(authorisation), started())).stored, undefined);
    await send(requestOf(initiation, uri, sca));
    const refused = await send(requestOf(authorisation), { ...started(), status: 409 });
    assert.equal(refused.stored?.authorisations, undefined);
  });

  test('states what it can read: without the paths of authorisations, no SCA', async () => {
    const stage = createStage({ canReadAuthorisations: () => false });
    assert.equal((await stage.send(requestOf(initiation, uri, sca))).content, 'status=LAST');
    const only: HeaderFields[number] = ['TPP-Notification-Content-Preferred', 'status=SCA'];
    const { support, content } = await stage.send(requestOf(initiation, uri, only));
    assert.deepEqual([support, content], ['false', undefined]);
  });

  test('returns the response of the bank if the authorisation cannot be added', async () => {
    const store = {
      read: async () => undefined,
      change: () => Promise.reject(new DatabaseError('it is away', 'none')),
      replace: () => assert.fail('nothing is subscribed'),
    };
    assert.equal((await createStage({ store }).send(requestOf(authorisation), started())).answer.status, 201);
  });
});
