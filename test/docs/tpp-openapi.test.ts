/** The OpenAPI description for TPP systems: two independent validators accept it, and it contains what TPP systems use. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createConfig, lint } from '@redocly/openapi-core';
import { Validator } from '@seriousme/openapi-schema-validator';
import { parse } from 'yaml';
import { operations } from '../../src/pis/operations.ts';
import { errorTable } from '../../src/request/errors.ts';
import { root } from '../kit/command.ts';

const file = join(root, 'docs/tpp-openapi.yaml');
const { paths, webhooks, components } = parse(readFileSync(file, 'utf8'));

interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly required?: boolean;
}

/** The names of the parameters that an operation requires. */
function requiredParameters(shape: string, method: string): readonly string[] {
  const listed: readonly Parameter[] = [...paths[shape].parameters, ...paths[shape][method].parameters];
  return listed
    .map((one): Parameter => (one.$ref ? components.parameters[one.$ref.split('/').at(-1) ?? ''] : one))
    .flatMap(({ name, required }) => (required ? [name] : []));
}

describe('the OpenAPI description for TPP systems', () => {
  test('satisfies the recommended rules of Redocly, without warnings', async () => {
    const config = await createConfig({ extends: ['recommended'] });
    const problems = await lint({ ref: file, config });
    assert.deepEqual(
      problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`),
      [],
    );
  });

  test('satisfies the schema of OpenAPI 3.1', async () => {
    const { valid, errors } = await new Validator().validate(file);
    assert.ok(valid, JSON.stringify(errors));
  });

  test('contains every operation of the public listener, and nothing of the admin listener', () => {
    const described = Object.entries<object>(paths).flatMap(([path, item]) =>
      Object.keys(item).flatMap((key) => (/^(?:get|put|post|delete)$/.test(key) ? [`${key} ${path}`] : [])),
    );
    const expected = operations.map(({ method, shape }) => `${method.toLowerCase()} ${shape}`);
    assert.deepEqual(described.toSorted(), [...expected, 'get /requests/{xRequestId}'].toSorted());
    assert.deepEqual(Object.keys(webhooks), ['paymentStatus']);
  });

  test('requires the headers without which the gateway or the bank refuses a request', () => {
    for (const { shape, method, name } of operations) {
      const required = requiredParameters(shape, method.toLowerCase());
      assert.ok(required.includes('X-Request-ID'), name);
      assert.equal(required.includes('PSU-IP-Address'), name === 'initiatePayment', name);
    }
  });

  test('has the codes of all errors of the gateway, in both formats', () => {
    const codes = Object.keys(errorTable);
    const { GatewayErrorCode, GatewayProblem } = components.schemas;
    assert.deepEqual(GatewayErrorCode.enum, codes);
    assert.deepEqual(
      GatewayProblem.properties.type.enum,
      codes.map((code) => `urn:penstock:error:${code}`),
    );
  });

  test('allows fields that no version of the standard has', () => {
    assert.doesNotMatch(readFileSync(file, 'utf8'), /additionalProperties: false|unevaluatedProperties/);
  });
});
