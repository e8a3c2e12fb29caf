import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  createMatcher,
  type Match,
  type Operation,
  operations,
  prefixOf,
} from '../../../src/pis/operations.ts';

const rules = {
  segment: 'berlingroup',
  paymentServices: ['payments', 'bulk-payments', 'periodic-payments'],
  paymentProducts: 'any',
  authorisationTypes: ['authorisations', 'cancellation-authorisations'],
} as const;
const match = createMatcher(rules);
const anything = createMatcher({ ...rules, paymentServices: 'any', authorisationTypes: 'any' });

const v1 = '/berlingroup/v1';
const payment = `${v1}/payments/sepa-credit-transfers/1234-wertiq-983`;

const kindOf = (method: string, target: string) => match(method, target).kind;

function operationOf(found: Match): Operation {
  assert.equal(found.kind, 'operation', JSON.stringify(found));
  return found.kind === 'operation' ? found.operation : assert.fail();
}

/** The rows of the table, with what their path looks like for each service and authorisation type. */
const paths = operations.flatMap((row) =>
  rules.paymentServices
    .filter((service) => row.shape.startsWith('/{') || row.shape.startsWith(`/${service}/`))
    .flatMap((service) =>
      (row.shape.includes('{payment-authorisation}') ? rules.authorisationTypes : ['']).map((type) => ({
        row,
        service,
        path: row.shape
          .replace('{payment-service}', service)
          .replace('{payment-product}', 'sepa-credit-transfers')
          .replace('{paymentId}', '1234-wertiq-983')
          .replace('{payment-authorisation}', type)
          .replace('{authorisation-id}', '123auth456'),
      })),
    ),
);

describe('the eight operations', () => {
  test('there are eight, under names of their own', () => {
    assert.equal(operations.length, 8);
    assert.equal(new Set(operations.map((row) => row.name)).size, 8);
  });

  for (const { row, service, path } of paths) {
    test(`${row.method} ${path} is ${row.name}`, () => {
      const operation = operationOf(match(row.method, `${v1}${path}`));

      assert.equal(operation.name, row.name);
      assert.equal(operation.lane, row.lane);
      assert.equal(operation.paymentService, service);
      assert.equal(operation.paymentProduct, 'sepa-credit-transfers');
      assert.equal(operation.path, `${v1}${path}`);
      assert.equal(operation.paymentId, row.createsPayment ? undefined : '1234-wertiq-983');
    });
  }

  test('every other method on a known path is refused with the methods it has', () => {
    const methods = ['GET', 'POST', 'DELETE', 'HEAD', 'OPTIONS', 'PUT', 'PATCH', 'TRACE', 'get', ''];
    for (const { path } of paths) {
      const allow = paths.filter((other) => other.path === path).map((other) => other.row.method);
      for (const method of methods.filter((name) => !allow.some((allowed) => allowed === name))) {
        assert.deepEqual(match(method, `${v1}${path}`), { kind: 'wrong-method', allow }, `${method} ${path}`);
      }
    }
  });

  test('a bulk payment can be cancelled but not read', () => {
    const bulk = `${v1}/bulk-payments/pain.001-sepa-credit-transfers/b1`;

    assert.deepEqual(match('GET', bulk), { kind: 'wrong-method', allow: ['DELETE'] });
    assert.deepEqual(match('DELETE', `${v1}/payments/p/1/status`), { kind: 'wrong-method', allow: ['GET'] });
  });

  test('only payments are created, only statuses polled, and only writes change a status', () => {
    for (const row of operations) {
      assert.equal(row.createsPayment, row.name === 'initiatePayment');
      assert.equal(row.readsStatus, row.lane === 'status');
      assert.equal(row.lane === 'write', row.createsPayment || row.changesStatus);
    }
  });
});

describe('status', () => {
  test('as last segment is the status operation and never an authorisation', () => {
    assert.equal(operationOf(anything('GET', `${payment}/status`)).name, 'getPaymentStatus');
    assert.equal(operationOf(anything('GET', `${payment}/status`)).authorisationType, undefined);
    assert.deepEqual(anything('POST', `${payment}/status`), { kind: 'wrong-method', allow: ['GET'] });
    assert.equal(anything('GET', `${payment}/status/1`).kind, 'unknown-path');
  });

  test('may be the id of a payment', () => {
    assert.equal(operationOf(match('GET', `${v1}/payments/p/status`)).paymentId, 'status');
    assert.equal(operationOf(match('GET', `${v1}/payments/p/status/status`)).name, 'getPaymentStatus');
  });
});

describe('ids', () => {
  const wild = 'GJv0KO..Fg==_=_bS6p6XvTWI';

  test('a real bank id passes, raw and percent-encoded, and becomes one and the same path', () => {
    const raw = operationOf(match('GET', `${v1}/payments/p/${wild}/status`));
    const encoded = operationOf(match('GET', `${v1}/payments/p/${encodeURIComponent(wild)}/status`));

    assert.equal(raw.paymentId, wild);
    assert.deepEqual(encoded, raw);
  });

  test('exactly eight characters may come percent-encoded, in capitals, and are decoded once', () => {
    const decoded = Array.from({ length: 256 }, (_, code) => {
      const encoded = `%${code.toString(16).toUpperCase().padStart(2, '0')}`;
      const found = match('GET', `${v1}/payments/p/a${encoded}b`);
      return found.kind === 'operation' ? found.operation.paymentId : undefined;
    });

    assert.deepEqual(
      decoded.filter((id) => id !== undefined),
      ['a!b', 'a$b', 'a*b', 'a+b', 'a,b', 'a:b', 'a=b', 'a@b'],
    );
    for (const id of ['a%3db', 'a%253Db', 'a%%33Db', '%', '%3', 'a%3']) {
      assert.equal(kindOf('GET', `${v1}/payments/p/${id}`), 'malformed', id);
    }
  });

  test('their further characters are refused in every other segment', () => {
    for (const sign of ['=', ':', '@', '+', ',', '!', '$', '*', '%3D', '%40']) {
      assert.equal(kindOf('GET', `${v1}/payments/p/a${sign}b`), 'operation', sign);
      assert.equal(kindOf('GET', `${payment}/authorisations/a${sign}b`), 'operation', sign);
      assert.equal(kindOf('GET', `${v1}/payments/p${sign}/1`), 'malformed', sign);
      assert.equal(kindOf('POST', `${v1}/payments${sign}/p`), 'malformed', sign);
      assert.equal(anything('GET', `${payment}/x${sign}`).kind, 'malformed', sign);
    }
  });

  test('have 1 to 256 characters, counted decoded', () => {
    const lengths = [1, 255, 256, 257].map((length) =>
      kindOf('GET', `${v1}/payments/p/${'a'.repeat(length)}`),
    );

    assert.deepEqual(lengths, ['operation', 'operation', 'operation', 'malformed']);
    assert.equal(kindOf('GET', `${v1}/payments/p/${'%3D'.repeat(256)}`), 'operation');
    assert.equal(kindOf('GET', `${v1}/payments/p/${'%3D'.repeat(257)}`), 'malformed');
  });
});

describe('the rules of an installation', () => {
  const segments = {
    '': '/v1',
    xs2a: '/xs2a/v1',
    'v1/berlin-group': '/v1/berlin-group/v1',
    '/a/b/': '/a/b/v1',
  };
  for (const [segment, prefix] of Object.entries(segments)) {
    test(`with the segment "${segment}" paths begin with ${prefix}`, () => {
      const matches = createMatcher({ ...rules, segment });
      const path = `${prefix}/payments/p/1/status`;

      assert.equal(prefixOf(segment), prefix);
      assert.equal(operationOf(matches('GET', path)).path, path);
      assert.equal(matches('GET', `/x${path}`).kind, 'unknown-path');
      assert.equal(matches('GET', '/berlingroup/v1/payments/p/1/status').kind, 'unknown-path');
    });
  }

  test('a list takes its members only', () => {
    const some = createMatcher({ ...rules, paymentServices: ['payments'], paymentProducts: ['sepa'] });

    assert.equal(some('POST', `${v1}/payments/sepa`).kind, 'operation');
    assert.equal(some('POST', `${v1}/payments/foreign`).kind, 'unknown-product');
    assert.equal(some('POST', `${v1}/bulk-payments/sepa`).kind, 'unknown-product');
    assert.equal(some('GET', `${v1}/periodic-payments/sepa/1`).kind, 'unknown-product');
    assert.equal(kindOf('GET', `${payment}/cancellation_authorisations`), 'unknown-path');
  });

  test('"any" takes every well-formed segment', () => {
    assert.equal(
      operationOf(anything('POST', `${v1}/card-payments/own.product~1`)).paymentService,
      'card-payments',
    );
    assert.equal(operationOf(anything('POST', `${payment}/approvals`)).authorisationType, 'approvals');
    assert.equal(operationOf(anything('GET', `${payment}/approvals/7`)).authorisationId, '7');
    assert.deepEqual(anything('GET', `${v1}/card-payments/p/1`), { kind: 'wrong-method', allow: ['DELETE'] });
  });
});
