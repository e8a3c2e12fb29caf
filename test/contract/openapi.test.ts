/** The OpenAPI description: complete, valid in form, and true of both listeners. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import supertest from 'supertest';
import { parse } from 'yaml';
import { openapiYaml } from '../../src/admin/openapi/document.ts';
import type { Route } from '../../src/admin/route.ts';
import { routeEntries } from '../../src/admin/routes.ts';
import { messageBody, type Subscription } from '../../src/notifications/subscription.ts';
import { createMatcher, operations, optionalOperations } from '../../src/pis/operations.ts';
import { errorTable } from '../../src/request/errors.ts';
import { asOperator, startAdminApi } from './admin-api-under-test.ts';

type Tree = Readonly<Record<string, unknown>>;
const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null;
const treeAt = (tree: unknown, ...path: readonly string[]): Tree => {
  const found = path.reduce<unknown>((at, name) => (isTree(at) ? at[name] : undefined), tree);
  assert.ok(isTree(found), path.join('.'));
  return found;
};

const subscription = {
  v: 1,
  id: 'subscription',
  tenant: 'tenant-1',
  environment: 'environment-1',
  client: 'shop',
  paymentService: 'payments',
  paymentProduct: 'sepa-credit-transfers',
  paymentId: '1234-wertiq-983',
  url: 'https://tpp.example',
  content: 'PROCESS',
  since: 0,
  until: 1,
  headers: [],
  sequence: 1,
  message: {
    id: 'message',
    sequence: 1,
    transactionStatus: 'ACTC',
    final: false,
    authorisationId: '123auth456',
    scaStatus: 'finalised',
    since: 0,
    attempts: 0,
    failedAttempts: 0,
  },
} as const satisfies Subscription;

const document: unknown = parse(openapiYaml());
const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

interface DescribedOperation {
  readonly method: string;
  readonly path: string;
  readonly item: Tree;
  readonly operation: Tree;
}
const described: readonly DescribedOperation[] = Object.keys(treeAt(document, 'paths')).flatMap((path) => {
  const item = treeAt(document, 'paths', path);
  const present = methods.filter((method) => method in item);
  return present.map((method) => ({ method, path, item, operation: treeAt(item, method) }));
});
const linesOf = (rows: readonly { readonly method: string; readonly path: string }[]) =>
  rows.map(({ method, path }) => `${method.toUpperCase()} ${path}`).toSorted();
const withTag = (tag: string) => described.filter(({ operation }) => [operation.tags].flat().includes(tag));

/** A request for a route, with its path parameters filled in. */
const requestTo = ({ method, path }: Pick<Route, 'method' | 'path'>, app = startAdminApi().app) =>
  supertest(app)[method](path.replaceAll(/[{}]/g, ''));

describe('the OpenAPI description', () => {
  test('contains the eight operations of the operations table', () => {
    assert.deepEqual(
      linesOf(withTag('payments')),
      linesOf(operations.map(({ method, shape }) => ({ method, path: shape }))),
    );
    for (const { operation, method, path } of withTag('payments')) {
      const row = operations.find((one) => one.method.toLowerCase() === method && one.shape === path);
      assert.equal(operation.operationId, row?.name);
    }
  });

  test('gives example paths that the public API accepts', () => {
    const match = createMatcher({
      segment: 'berlingroup',
      paymentServices: 'any',
      paymentProducts: 'any',
      authorisationTypes: 'any',
      alsoOffer: optionalOperations,
    });
    for (const { operation, method, path } of withTag('payments')) {
      const target = path.replace(/\{([^}]+)\}/g, (_, name) =>
        String(treeAt(document, 'components', 'parameters', name).example),
      );
      const found = match(method.toUpperCase(), `/berlingroup/v1${target}`);
      assert.equal(found.kind === 'operation' && found.operation.name, operation.operationId);
    }
  });

  test('describes the webhook as the gateway sends it', () => {
    const { security } = treeAt(document, 'webhooks', 'paymentStatus', 'post');
    assert.deepEqual(security, []);
    const body: unknown = JSON.parse(
      messageBody(subscription, subscription.message, 'https://gw.example').toString(),
    );
    assert.ok(isTree(body));
    const schema = treeAt(document, 'components', 'schemas', 'StatusMessage');
    assert.deepEqual(Object.keys(treeAt(schema, 'properties')), Object.keys(body));
    const { authorisationId, scaStatus, ...always } = body;
    assert.deepEqual(schema.required, Object.keys(always));
  });

  test('contains the look-up of requests, outside of the path of the standard', () => {
    assert.deepEqual(linesOf(withTag('requests')), ['GET /requests/{xRequestId}']);
    const { servers } = treeAt(document, 'paths', '/requests/{xRequestId}');
    assert.deepEqual(
      [servers].flat().map((server) => isTree(server) && server.url),
      ['{gateway}'],
    );
  });

  test('contains every route of the admin listener under the name of its handler', () => {
    assert.deepEqual(linesOf(withTag('operators')), linesOf(routeEntries.map(([, route]) => route)));
    for (const [name, { method, path }] of routeEntries)
      assert.equal(treeAt(document, 'paths', path, method).operationId, name);
  });

  test('requires a token exactly for the routes that answer 401 without one', async () => {
    for (const [, route] of routeEntries) {
      const { status } = await requestTo(route);
      const { security } = treeAt(document, 'paths', route.path, route.method);
      assert.equal(status === 401, JSON.stringify(security) !== '[]', `${route.path}: ${status}`);
    }
  });

  test('lists the status that each admin route answers with', async () => {
    for (const [, route] of routeEntries) {
      if (route.path === '/api/events') continue; // never ends
      const { status, body } = await requestTo(route).set(asOperator);
      const { responses } = treeAt(document, 'paths', route.path, route.method);
      assert.ok(isTree(responses) && status in responses, `${route.method} ${route.path}: ${status}`);
      if (status === 200 && 'schema' in route.response) route.response.schema.parse(body);
    }
  });

  test('names every error of the gateway under its status', () => {
    for (const [code, { status }] of Object.entries(errorTable)) {
      const { description } = treeAt(document, 'components', 'responses', `Error${status}`);
      assert.match(String(description), new RegExp(`\\b${code}\\b`));
    }
  });

  test('has the form of OpenAPI 3.1', () => {
    assert.match(String(treeAt(document).openapi), /^3\.1\.\d$/);
    for (const name of ['title', 'version']) assert.equal(typeof treeAt(document, 'info')[name], 'string');
    const tagged = ['payments', 'requests', 'operators'].map((tag) => withTag(tag).length);
    assert.equal(
      described.length,
      tagged.reduce((sum, count) => sum + count),
      'one tag each',
    );
    for (const { path, item, operation } of described) {
      assert.match(path, /^\//);
      const parameters = [item.parameters, operation.parameters].flat().filter(isTree).map(resolved);
      const inPath = parameters.filter((one) => one.in === 'path');
      assert.deepEqual(
        inPath.map(({ name }) => name),
        [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name),
        path,
      );
      assert.ok(
        inPath.every(({ required }) => required === true),
        path,
      );
      const responses = Object.entries(treeAt(operation, 'responses'));
      assert.ok(responses.length > 0, path);
      for (const [status, response] of responses) {
        assert.match(status, /^[1-5]\d\d$/);
        assert.equal(typeof resolved(treeAt({ response }, 'response')).description, 'string', path);
      }
      for (const scheme of [operation.security].flat().filter(isTree).flatMap(Object.keys))
        treeAt(document, 'components', 'securitySchemes', scheme);
    }
    const ids = described.flatMap(({ operation }) => operation.operationId ?? []);
    assert.equal(new Set(ids).size, ids.length);
    for (const [, target = ''] of openapiYaml().matchAll(/\$ref: "?#\/([^"\n]+)"?/g))
      treeAt(document, ...target.split('/'));
  });

  test('is served on the admin listener without a token', async () => {
    const { text, type } = await supertest(startAdminApi().app).get('/openapi.yaml').buffer(true).expect(200);
    assert.equal(type, 'application/yaml');
    assert.equal(text, openapiYaml());
  });
});

/** What a reference refers to, or the thing itself. */
function resolved(tree: Tree): Tree {
  return typeof tree.$ref === 'string' ? treeAt(document, ...tree.$ref.split('/').slice(1)) : tree;
}
