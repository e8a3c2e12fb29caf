import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  createMatcher,
  type Match,
  type Operation,
  operations,
  optionalOperations,
  prefixOf,
} from '../../../src/pis/operations.ts';

const rules = {
  segment: 'berlingroup',
  paymentServices: ['payments', 'bulk-payments', 'periodic-payments'],
  paymentProducts: 'any',
  authorisationTypes: ['authorisations', 'cancellation-authorisations'],
} as const;
const match = createMatcher(rules);
const withOptional = createMatcher({ ...rules, alsoOffer: optionalOperations });
const anything = createMatcher({ ...rules, paymentServices: 'any', authorisationTypes: 'any' });

const v1 = '/berlingroup/v1';
const payment = `${v1}/payments/sepa-credit-transfers/1234-wertiq-983`;

const kindOf = (method: string, target: string) => match(method, target).kind;

function operationOf(found: Match): Operation {
  assert.equal(found.kind, 'operation', JSON.stringify(found));
  return found.kind === 'operation' ? found.operation : assert.fail();
}

/** The rows of the table, with a path for each service and authorisation type. */
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

describe('the operations table', () => {
  test('has eight operations and three optional ones, with unique names', () => {
    assert.equal(operations.filter((row) => !row.isOptional).length, 8);
    assert.deepEqual(optionalOperations, ['updatePsuData', 'updatePayment', 'getBulkPayment']);
    assert.equal(new Set(operations.map((row) => row.name)).size, 11);
  });

  for (const { row, service, path } of paths) {
    test(`matches ${row.method} ${path} as ${row.name}`, () => {
      const operation = operationOf((row.isOptional ? withOptional : match)(row.method, `${v1}${path}`));

      assert.equal(operation.name, row.name);
      assert.equal(operation.lane, row.lane);
      assert.equal(operation.paymentService, service);
      assert.equal(operation.paymentProduct, 'sepa-credit-transfers');
      assert.equal(operation.path, `${v1}${path}`);
      assert.equal(operation.paymentId, row.createsPayment ? undefined : '1234-wertiq-983');
    });
  }

  test('refuses every other method on a known path, and lists the methods of that path', () => {
    const methods = ['GET', 'POST', 'DELETE', 'HEAD', 'OPTIONS', 'PUT', 'PATCH', 'TRACE', 'get', ''];
    for (const { path } of paths) {
      const rows = paths.filter((other) => other.path === path).map((other) => other.row);
      for (const method of methods) {
        const row = rows.find((one) => one.method === method);
        const target = `${v1}${path}`;
        if (!row) {
          const allow = rows.map((one) => one.method);
          assert.deepEqual(
            withOptional(method, target),
            { kind: 'wrong-method', allow },
            `${method} ${path}`,
          );
        }
        if (row && !row.isOptional) continue;
        const allow = rows.filter((one) => !one.isOptional).map((one) => one.method);
        const refusal = { kind: 'wrong-method', allow, ...(row && { notOffered: row.name }) };
        assert.deepEqual(match(method, target), refusal, `${method} ${path}`);
      }
    }
  });

  test('offers exactly the optional operations that are named', () => {
    for (const name of optionalOperations) {
      const one = createMatcher({ ...rules, alsoOffer: [name] });
      for (const { row, path } of paths.filter((each) => each.row.isOptional))
        assert.equal(one(row.method, v1 + path).kind, row.name === name ? 'operation' : 'wrong-method');
    }
  });

  test('allows to cancel a bulk payment, but not to read it unless that is offered', () => {
    const bulk = `${v1}/bulk-payments/pain.001-sepa-credit-transfers/b1`;

    assert.deepEqual(match('GET', bulk), {
      kind: 'wrong-method',
      allow: ['DELETE'],
      notOffered: 'getBulkPayment',
    });
    assert.deepEqual(match('DELETE', `${v1}/payments/p/1/status`), { kind: 'wrong-method', allow: ['GET'] });
  });

  test('gives createsPayment to initiatePayment, readsStatus to the status lane, and both write traits to the write lane', () => {
    for (const row of operations) {
      assert.equal(row.createsPayment, row.name === 'initiatePayment');
      assert.equal(row.readsStatus, row.lane === 'status');
      assert.equal(row.lane === 'write', row.createsPayment || row.changesStatus);
    }
  });

  test('gives carriesCredentials to the operations whose bodies may have data of the payer', () => {
    assert.deepEqual(
      operations.flatMap((row) => (row.carriesCredentials ? [row.name] : [])),
      ['startAuthorisation', 'updatePsuData', 'updatePayment'],
    );
  });
});

describe('the status that a response shows besides other data', () => {
  test("is the payment's in reads of payments, and the authorisation's in reads of an authorisation", () => {
    const shown = operations.filter(({ showsStatus }) => showsStatus !== 'none');
    assert.deepEqual(
      shown.map(({ name, showsStatus }) => [name, showsStatus]),
      [
        ['getPayment', 'transactionStatus'],
        ['getPeriodicPayment', 'transactionStatus'],
        ['getAuthorisation', 'scaStatus'],
        ['getBulkPayment', 'transactionStatus'],
      ],
    );
  });
});

describe('the segment "status"', () => {
  test('at the end of a path is the status operation, never an authorisation type', () => {
    assert.equal(operationOf(anything('GET', `${payment}/status`)).name, 'getPaymentStatus');
    assert.deepEqual(anything('POST', `${payment}/status`), { kind: 'wrong-method', allow: ['GET'] });
    assert.equal(anything('GET', `${payment}/status/1`).kind, 'unknown-path');
  });

  test('is never an id: the path lacks one', () => {
    assert.equal(kindOf('GET', `${v1}/payments/p/status`), 'unknown-path');
    assert.equal(kindOf('GET', `${v1}/payments/p/status/status`), 'unknown-path');
  });
});

describe('an id that equals the name of a sub-resource', () => {
  const names = ['status', 'authorisations', 'cancellation-authorisations'];

  test('is an unknown path, whatever the method', () => {
    for (const method of ['GET', 'DELETE', 'POST', 'PUT']) {
      for (const id of names) {
        assert.equal(kindOf(method, `${v1}/payments/p/${id}`), 'unknown-path', `${method} ${id}`);
        assert.equal(kindOf(method, `${v1}/payments/p/${id}/status`), 'unknown-path', `${method} ${id}`);
        for (const matches of [match, anything]) {
          assert.equal(matches(method, `${v1}/payments/p/${id}/authorisations`).kind, 'unknown-path');
          assert.equal(matches(method, `${payment}/authorisations/${id}`).kind, 'unknown-path');
        }
      }
    }
  });

  test('is an unknown path for configured authorisation types as well', () => {
    const approvals = createMatcher({ ...rules, authorisationTypes: ['approvals'] });
    assert.equal(approvals('GET', `${v1}/payments/p/approvals`).kind, 'unknown-path');
    assert.equal(approvals('GET', `${v1}/payments/p/authorisations`).kind, 'unknown-path');
    assert.equal(kindOf('GET', `${v1}/payments/p/approvals`), 'operation');
  });

  test('may contain such a name, or have it in another letter case', () => {
    for (const id of ['status1', 'Status', 'my-authorisations', 'authorisations.1'])
      assert.equal(operationOf(match('GET', `${v1}/payments/p/${id}`)).paymentId, id);
  });

  test('is not meant by a payment product', () => {
    assert.equal(operationOf(match('POST', `${v1}/payments/status`)).paymentProduct, 'status');
  });
});

describe('payment and authorisation ids', () => {
  const realId = 'GJv0KO..Fg==_=_bS6p6XvTWI';

  test('of a real bank are accepted raw and percent-encoded, and lead to the same path', () => {
    const raw = operationOf(match('GET', `${v1}/payments/p/${realId}/status`));
    const encoded = operationOf(match('GET', `${v1}/payments/p/${encodeURIComponent(realId)}/status`));

    assert.equal(raw.paymentId, realId);
    assert.deepEqual(encoded, raw);
  });

  test('may have exactly eight characters percent-encoded in upper case, which are decoded once, without being unusual', () => {
    const decoded = Array.from({ length: 256 }, (_, code) => {
      const encoded = `%${code.toString(16).toUpperCase().padStart(2, '0')}`;
      const found = match('GET', `${v1}/payments/p/a${encoded}b`);
      const isUsual = found.kind === 'operation' && found.operation.unusualIds.length === 0;
      return isUsual ? found.operation.paymentId : undefined;
    });

    assert.deepEqual(
      decoded.filter((id) => id !== undefined),
      ['a!b', 'a$b', 'a*b', 'a+b', 'a,b', 'a:b', 'a=b', 'a@b'],
    );
    for (const id of ['a%253Db', 'a%%33Db', '%', '%3', 'a%3']) {
      assert.equal(kindOf('GET', `${v1}/payments/p/${id}`), 'malformed', id);
    }
  });

  test('may contain characters that are refused in all other segments', () => {
    for (const sign of ['=', ':', '@', '+', ',', '!', '$', '*', '%3D', '%40']) {
      assert.equal(kindOf('GET', `${v1}/payments/p/a${sign}b`), 'operation', sign);
      assert.equal(kindOf('GET', `${payment}/authorisations/a${sign}b`), 'operation', sign);
      assert.equal(kindOf('GET', `${v1}/payments/p${sign}/1`), 'malformed', sign);
      assert.equal(kindOf('POST', `${v1}/payments${sign}/p`), 'malformed', sign);
      assert.equal(anything('GET', `${payment}/x${sign}`).kind, 'malformed', sign);
    }
  });

  test('have 1 to 256 characters after decoding, and up to 1,024 if the bank has issued them', () => {
    const unusualIds = (id: string) => operationOf(match('GET', `${v1}/payments/p/${id}`)).unusualIds;
    for (const id of ['a', 'a'.repeat(255), 'a'.repeat(256), '%3D'.repeat(256)])
      assert.deepEqual(unusualIds(id), []);
    for (const id of ['a'.repeat(257), '%3D'.repeat(257), 'a'.repeat(1024)])
      assert.deepEqual(unusualIds(id), ['payment']);
    assert.equal(kindOf('GET', `${v1}/payments/p/${'a'.repeat(1025)}`), 'malformed');
  });
});

describe('the configured path rules', () => {
  const segments = {
    '': '/v1',
    xs2a: '/xs2a/v1',
    'v1/berlin-group': '/v1/berlin-group/v1',
    '/a/b/': '/a/b/v1',
  };
  for (const [segment, prefix] of Object.entries(segments)) {
    test(`let paths begin with ${prefix} for the segment "${segment}"`, () => {
      const matches = createMatcher({ ...rules, segment });
      const path = `${prefix}/payments/p/1/status`;

      assert.equal(prefixOf(segment), prefix);
      assert.equal(operationOf(matches('GET', path)).path, path);
      assert.equal(matches('GET', `/x${path}`).kind, 'unknown-path');
      assert.equal(matches('GET', '/berlingroup/v1/payments/p/1/status').kind, 'unknown-path');
    });
  }

  test('accept only the members of a list', () => {
    const some = createMatcher({ ...rules, paymentServices: ['payments'], paymentProducts: ['sepa'] });

    assert.equal(some('POST', `${v1}/payments/sepa`).kind, 'operation');
    assert.equal(some('POST', `${v1}/payments/foreign`).kind, 'unknown-product');
    assert.equal(some('POST', `${v1}/bulk-payments/sepa`).kind, 'unknown-product');
    assert.equal(some('GET', `${v1}/periodic-payments/sepa/1`).kind, 'unknown-product');
    assert.equal(kindOf('GET', `${payment}/cancellation_authorisations`), 'unknown-path');
  });

  test('accept every well-formed segment for "any"', () => {
    assert.equal(
      operationOf(anything('POST', `${v1}/card-payments/own.product~1`)).paymentService,
      'card-payments',
    );
    assert.equal(operationOf(anything('POST', `${payment}/approvals`)).name, 'startAuthorisation');
    assert.equal(operationOf(anything('GET', `${payment}/approvals/7`)).name, 'getAuthorisation');
    assert.deepEqual(anything('GET', `${v1}/card-payments/p/1`), { kind: 'wrong-method', allow: ['DELETE'] });
  });
});
