import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { HeaderFields } from '../../../src/pis/headers.ts';
import { createMatcher, type Method, type Operation } from '../../../src/pis/operations.ts';
import { isAccepted, meaningOf } from '../../../src/request/meaning.ts';
import { contentOf } from '../../../src/request/read-content.ts';
import { withMeaning } from '../../kit/meaning.ts';

const any = 'any';
const match = createMatcher({
  segment: 'berlingroup',
  paymentServices: any,
  paymentProducts: any,
  authorisationTypes: any,
});

function operation(method: Method, path: string): Operation {
  const found = match(method, `/berlingroup/v1/${path}`);
  assert.ok(found.kind === 'operation');
  return found.operation;
}

const initiation = operation('POST', 'payments/sepa-credit-transfers');
const cancellation = operation('DELETE', 'payments/sepa-credit-transfers/p-1');
const authorisation = operation('POST', 'payments/sepa-credit-transfers/p-1/authorisations');
const all = [initiation, cancellation, authorisation];

interface Answer {
  readonly headers?: HeaderFields;
  readonly body?: unknown;
  readonly followsReleasedAttempt?: boolean;
}

function meaning(
  of: Operation,
  status: number,
  { headers = [], body = '', followsReleasedAttempt = false }: Answer = {},
) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const content = contentOf({ headers, body: Buffer.from(text) });
  assert.ok(!(content instanceof Promise));
  return meaningOf(of, { status, headers }, content, followsReleasedAttempt);
}

const outcome = (...of: Parameters<typeof meaning>) => meaning(...of).outcome;
const idIn = (answer: Answer, status = 201) => meaning(initiation, status, answer).paymentId;
const location = (value: string) => ({ headers: [['Location', value]] as const });
const errorOf = (code: string) => ({ body: { tppMessages: [{ category: 'ERROR', code }] } });
const html = { headers: [['Content-Type', 'text/html']] as const, body: '<!doctype html><p>' };
const linked = '/v1/payments/sepa-credit-transfers/linked';

describe('the meaning of an answer', () => {
  test('is accepted for an initiation that names a payment, with any status below 500', () => {
    for (const status of [200, 201, 202, 302, 304, 400, 401, 404, 408, 409, 429, 499]) {
      const named = meaning(initiation, status, { body: { paymentId: 'p-1', ...errorOf('X').body } });
      assert.deepEqual([named.outcome, named.paymentId], ['accepted', 'p-1'], String(status));
      assert.equal(outcome(initiation, status, location(linked)), 'accepted');
    }
  });

  test('names the payment of the body, else that of Location, else that of the self link', () => {
    const links = { _links: { self: { href: '/v1/payments/sct/self' } } };
    assert.equal(idIn({ ...location(linked), body: { paymentId: 'p-1', ...links } }), 'p-1');
    assert.equal(idIn({ ...location(linked), body: { paymentId: '', ...links } }), 'linked');
    assert.equal(idIn({ ...location('/elsewhere'), body: links }), 'self');
    assert.equal(idIn({ body: { _links: { self: 'payments/sct/text' } } }), 'text');
    assert.equal(idIn(location('{"href":"https://bank.example/v1/payments/sct/object"}')), 'object');
    assert.equal(idIn({ body: '<a:r xmlns:a="urn:a"><a:paymentId> x-1 </a:paymentId></a:r>' }), 'x-1');
    assert.equal(idIn(location('{"href":')), undefined);
    assert.equal(idIn({ body: { payment: { paymentId: 'nested' } } }), undefined);
    assert.equal(meaning(cancellation, 200, location(linked)).paymentId, undefined);
  });

  test('is failed for a 5xx, and names its payment', () => {
    for (const one of all)
      for (const status of [500, 501, 502, 503, 504, 599])
        assert.equal(outcome(one, status, { ...html, followsReleasedAttempt: true }), 'failed');
    const named = meaning(initiation, 503, { body: { paymentId: 'p-1' } });
    assert.deepEqual(named, { outcome: 'failed', paymentId: 'p-1', why: 'the bank answered 503' });
  });

  test('is refused if a readable answer below 400 says RJCT, or has an error', () => {
    for (const one of all)
      for (const status of [200, 201, 202, 204, 302])
        for (const body of [
          { transactionStatus: 'RJCT' },
          errorOf('SERVICE_BLOCKED').body,
          { tppMessages: [{ category: 'WARNING' }, { category: 'ERROR' }] },
          '<D><TxSts>RJCT</TxSts></D>',
          '<r><tppMessages><category>ERROR</category></tppMessages></r>',
        ])
          assert.equal(outcome(one, status, { body }), 'refused');
  });

  test('is in doubt for any other 2xx, 3xx or 408 to an initiation, with the reason', () => {
    for (const [answer, why] of [
      [{}, 'its body is empty'],
      [{ body: {} }, 'its body has no paymentId'],
      [{ body: '<r/>' }, 'its body has no paymentId'],
      [html, 'its body cannot be read (a web page)'],
      [{ ...html, body: 'Back soon' }, 'its body cannot be read (a web page)'],
      [{ body: 'OK' }, 'its body cannot be read (not JSON or XML)'],
      [{ body: { tppMessages: [{ category: 'WARNING' }] } }, 'its body has no paymentId'],
    ] as const)
      for (const status of [200, 201, 202, 204, 299, 304, 408])
        assert.deepEqual(meaning(initiation, status, answer), {
          outcome: 'in-doubt',
          paymentId: undefined,
          why: `the bank answered ${status} without a payment: ${why}`,
        });
  });

  test('is in doubt for a redirect that names no payment, whatever its body is', () => {
    for (const status of [300, 301, 302, 303, 307, 308, 399])
      for (const answer of [{}, html, { body: 'Moved' }, { body: {} }, location('/elsewhere')]) {
        const { outcome, why } = meaning(initiation, status, answer);
        assert.deepEqual(
          [outcome, why],
          ['in-doubt', `the bank answered ${status} without a payment: a redirect`],
        );
      }
    assert.equal(meaning(cancellation, 302).why, 'the bank answered 302: a redirect');
    assert.equal(meaning(cancellation, 304).why, 'the bank answered 304');
  });

  test('is in doubt for a redirect to a page whose path looks like that of a payment', () => {
    for (const page of [
      'https://www.bank.example/payments/info/maintenance.html',
      '/web/payments/de/login?next=1',
    ])
      assert.equal(outcome(initiation, 302, location(page)), 'in-doubt', page);
    assert.equal(idIn(location(linked), 303), 'linked');
    assert.equal(
      idIn(location('/v1/payments/SEPA/linked')),
      'linked',
      'a 201 may spell the product differently',
    );
  });

  test('is in doubt for a web page to another write, whatever its label is', () => {
    for (const one of [cancellation, authorisation])
      for (const label of ['application/xhtml+xml', 'text/plain', 'application/json', undefined])
        for (const body of [
          '<!doctype html><p>Sorry',
          '<html><body>Sorry<br></body></html>',
          '\n<HTML lang="de">',
        ]) {
          const headers = label === undefined ? [] : ([['Content-Type', label]] as const);
          assert.equal(outcome(one, 200, { headers, body }), 'in-doubt', `${label} ${body}`);
        }
  });

  test('is in doubt for a 3xx, a 408 or a web page to another write', () => {
    for (const one of [cancellation, authorisation]) {
      for (const status of [300, 302, 304, 399, 408]) assert.equal(outcome(one, status), 'in-doubt');
      for (const status of [200, 201, 204, 400, 401, 403, 404, 409, 429])
        assert.equal(outcome(one, status, html), 'in-doubt', String(status));
    }
  });

  test('is in doubt for a 409 after an attempt that was released, unless it names a payment', () => {
    for (const one of all) {
      assert.equal(outcome(one, 409), 'refused');
      assert.equal(outcome(one, 409, { followsReleasedAttempt: true }), 'in-doubt');
      assert.equal(outcome(one, 400, { followsReleasedAttempt: true }), 'refused');
      assert.equal(
        outcome(one, 401, { ...errorOf('TOKEN_INVALID'), followsReleasedAttempt: true }),
        'released',
      );
    }
    assert.equal(
      outcome(initiation, 409, { body: { paymentId: 'p' }, followsReleasedAttempt: true }),
      'accepted',
    );
  });

  test('is released for a 429, and for a 401 of the access', () => {
    for (const one of all) {
      assert.equal(outcome(one, 429, errorOf('ACCESS_EXCEEDED')), 'released');
      for (const code of ['TOKEN_UNKNOWN', 'TOKEN_EXPIRED', 'CERTIFICATE_INVALID', 'SIGNATURE_MISSING']) {
        assert.equal(outcome(one, 401, errorOf(code)), 'released');
        assert.equal(outcome(one, 401, { body: { code } }), 'released');
        const xml = `<r><tppMessage><code>${code}</code></tppMessage></r>`;
        assert.equal(outcome(one, 401, { body: xml }), 'released');
      }
    }
    for (const one of [initiation, cancellation]) assert.equal(outcome(one, 401), 'released');
  });

  test('is refused for a 401 to an operation on authorisations with any other code', () => {
    for (const answer of [
      {},
      errorOf('PSU_CREDENTIALS_INVALID'),
      errorOf('MY_TOKEN_INVALID'),
      { body: { code: 'PSU_CREDENTIALS_INVALID', detail: 'TOKEN_INVALID' } },
      { body: { tppMessages: 'TOKEN_INVALID' } },
    ])
      assert.equal(outcome(authorisation, 401, answer), 'refused');
  });

  test('is refused for any other 4xx, and accepted for any other 2xx', () => {
    for (const one of all)
      for (const status of [400, 403, 404, 405, 409, 410, 415, 422, 451, 499])
        assert.equal(outcome(one, status, errorOf('FORMAT_ERROR')), 'refused');
    for (const one of [cancellation, authorisation])
      for (const status of [200, 201, 202, 204, 299])
        for (const body of ['', '{}', 'OK', '{"transactionStatus":"CANC"}'])
          assert.equal(outcome(one, status, { body }), 'accepted');
  });

  test('is accepted for a write that the bank has executed, for no other one, and not for a read', () => {
    const isWriteAccepted = (one: Operation, status: number, body: unknown) => {
      const bytes = Buffer.from(JSON.stringify(body));
      const response = {
        status,
        headers: [],
        body: bytes,
        environment: 'sandbox',
        servedFrom: 'bank',
      } as const;
      return isAccepted(withMeaning(one, response));
    };
    for (const status of [200, 201, 302, 400, 401, 429])
      assert.equal(isWriteAccepted(initiation, status, { paymentId: 'p-1' }), true);
    for (const one of [cancellation, authorisation]) assert.equal(isWriteAccepted(one, 200, {}), true);
    assert.equal(isWriteAccepted(initiation, 201, {}), false, 'in doubt');
    for (const one of all) {
      assert.equal(isWriteAccepted(one, 200, { transactionStatus: 'RJCT' }), false, 'refused');
      assert.equal(isWriteAccepted(one, 404, {}), false, 'refused');
      assert.equal(isWriteAccepted(one, 429, {}), false, 'released');
      assert.equal(isWriteAccepted(one, 302, {}), false, 'in doubt');
      assert.equal(isWriteAccepted(one, 503, { paymentId: 'p-1' }), false, 'failed');
    }
    const read = { status: 200, headers: [], body: Buffer.alloc(0), environment: 'sandbox' };
    assert.equal(isAccepted({ ...read, servedFrom: 'bank' }), false);
  });
});
