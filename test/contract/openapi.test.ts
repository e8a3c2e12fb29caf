/** The OpenAPI description: everything that both doors understand, and nothing else. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import express, { type Router } from 'express';
import supertest from 'supertest';
import { parse } from 'yaml';
import { openapiYaml } from '../../src/admin/openapi/document.ts';
import { createMatcher, operations } from '../../src/pis/operations.ts';
import { errorTable } from '../../src/request/errors.ts';
import { startAdminApi } from './admin-api-under-test.ts';

type Tree = Readonly<Record<string, unknown>>;
const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null;
const treeAt = (tree: unknown, ...path: readonly string[]): Tree => {
  const found = path.reduce<unknown>((at, name) => (isTree(at) ? at[name] : undefined), tree);
  assert.ok(isTree(found), path.join('.'));
  return found;
};

const document: unknown = parse(openapiYaml);
const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

interface Described {
  readonly method: string;
  readonly path: string;
  readonly item: Tree;
  readonly operation: Tree;
}
const described: readonly Described[] = Object.keys(treeAt(document, 'paths')).flatMap((path) => {
  const item = treeAt(document, 'paths', path);
  const present = methods.filter((method) => method in item);
  return present.map((method) => ({ method, path, item, operation: treeAt(item, method) }));
});
const linesOf = (rows: readonly { readonly method: string; readonly path: string }[]) =>
  rows.map(({ method, path }) => `${method.toUpperCase()} ${path}`).toSorted();
const withTag = (tag: string) => described.filter(({ operation }) => [operation.tags].flat().includes(tag));

describe('the description', () => {
  test('holds the eight operations, as the table has them', () => {
    assert.deepEqual(
      linesOf(withTag('payments')),
      linesOf(operations.map(({ method, shape }) => ({ method, path: shape }))),
    );
    for (const { operation, method, path } of withTag('payments')) {
      const row = operations.find((one) => one.method.toLowerCase() === method && one.shape === path);
      assert.equal(operation.operationId, row?.name);
    }
  });

  test('gives examples that the door takes for these operations', () => {
    const match = createMatcher({
      segment: 'berlingroup',
      paymentServices: 'any',
      paymentProducts: 'any',
      authorisationTypes: 'any',
    });
    for (const { operation, method, path } of withTag('payments')) {
      const target = path.replace(/\{([^}]+)\}/g, (_, name) =>
        String(treeAt(document, 'components', 'parameters', name).example),
      );
      const found = match(method.toUpperCase(), `/berlingroup/v1${target}`);
      assert.equal(found.kind === 'operation' && found.operation.name, operation.operationId);
    }
  });

  test('holds every route of the operators’ door, and no other', (t) => {
    assert.deepEqual(
      linesOf(withTag('operators')),
      routesOf(t.mock, () => startAdminApi()),
    );
  });

  test('says of every route rightly whether it is open', async () => {
    const { app } = startAdminApi();
    for (const { method, path, operation } of withTag('operators')) {
      const { status } = await supertest(app)[method as 'get'](path.replaceAll(/[{}]/g, '')); // one of four, all there
      assert.equal(
        status === 401,
        JSON.stringify(operation.security) !== '[]',
        `${method} ${path}: ${status}`,
      );
    }
  });

  test('names every error that the gateway makes, under its status', () => {
    for (const [code, { status }] of Object.entries(errorTable)) {
      const { description } = treeAt(document, 'components', 'responses', `Error${status}`);
      assert.match(String(description), new RegExp(`\\b${code}\\b`));
    }
  });

  test('is OpenAPI 3.1 in form', () => {
    assert.match(String(treeAt(document).openapi), /^3\.1\.\d$/);
    for (const name of ['title', 'version']) assert.equal(typeof treeAt(document, 'info')[name], 'string');
    assert.equal(described.length, withTag('payments').length + withTag('operators').length, 'one tag each');
    for (const { path, item, operation } of described) {
      assert.match(path, /^\//);
      const names = [item.parameters, operation.parameters].flat().filter(isTree).map(resolved);
      const inPath = names.filter((one) => one.in === 'path').map(({ name }) => name);
      assert.deepEqual(
        inPath,
        [...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name),
        path,
      );
      assert.ok(
        names.filter((one) => one.in === 'path').every(({ required }) => required === true),
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
    for (const [, target = ''] of openapiYaml.matchAll(/\$ref: "?#\/([^"\n]+)"?/g))
      treeAt(document, ...target.split('/'));
  });

  test('is served to everybody at the operators’ door', async () => {
    const { text, type } = await supertest(startAdminApi().app).get('/openapi.yaml').buffer(true).expect(200);
    assert.equal(type, 'application/yaml');
    assert.equal(text, openapiYaml);
  });
});

/** What a reference refers to, or the thing itself. */
function resolved(tree: Tree): Tree {
  return typeof tree.$ref === 'string' ? treeAt(document, ...tree.$ref.split('/').slice(1)) : tree;
}

/** The routes that an Express application gets while it is built, as `METHOD /path/{parameter}`. */
function routesOf(mock: typeof import('node:test').mock, build: () => unknown): readonly string[] {
  const seen: { readonly router: unknown; readonly path: string; readonly methods: object }[] = [];
  const mounts: { readonly router: unknown; readonly path: string; readonly child: unknown }[] = [];
  const { prototype } = express.Router as unknown as { prototype: Router }; // Express's types do not know it
  const { route, use } = prototype;
  mock.method(prototype, 'route', function (this: Router, path: string) {
    const made = route.call(this, path);
    seen.push({ router: this, path, methods: (made as unknown as { methods: object }).methods }); // nor this
    return made;
  });
  mock.method(prototype, 'use', function (this: Router, ...args: unknown[]) {
    const [first, ...handlers] = typeof args[0] === 'string' ? args : ['', ...args];
    for (const child of handlers) mounts.push({ router: this, path: String(first), child });
    return Reflect.apply(use, this, args);
  });
  build();
  mock.restoreAll();

  const pathTo = (router: unknown): string => {
    const mount = mounts.find(({ child }) => child === router);
    return mount ? pathTo(mount.router) + mount.path : '';
  };
  const own = seen.flatMap(({ router, path, methods: taken }) =>
    Object.keys(taken).map((method) => ({
      method,
      path: `${pathTo(router)}${path}`.replace(/(?<=.)\/$/, '').replaceAll(/:(\w+)/g, '{$1}'),
    })),
  );
  return linesOf(own);
}
