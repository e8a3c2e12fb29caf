/** Every error of the gateway as a TPP receives it. The table is repeated here because it is a contract. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import supertest from 'supertest';
import { type ErrorCode, GatewayError } from '../../src/request/errors.ts';
import { transfersPath } from '../kit/request.ts';
import { requestId, startApp } from './tpp-app-fixture.ts';

/** Status, the Berlin Group's code, and whether the bank can have received the request. */
const contract: Readonly<Record<ErrorCode, readonly [number, string, 'no' | 'maybe']>> = {
  PATH_MALFORMED: [400, 'FORMAT_ERROR', 'no'],
  HEADER_MALFORMED: [400, 'FORMAT_ERROR', 'no'],
  REQUEST_ID_INVALID: [400, 'FORMAT_ERROR', 'no'],
  BODY_UNEXPECTED: [400, 'FORMAT_ERROR', 'no'],
  ENVIRONMENT_UNKNOWN: [400, 'FORMAT_ERROR', 'no'],
  PATH_UNKNOWN: [404, 'RESOURCE_UNKNOWN', 'no'],
  PRODUCT_UNKNOWN: [404, 'PRODUCT_UNKNOWN', 'no'],
  PAYMENT_UNKNOWN: [404, 'RESOURCE_UNKNOWN', 'no'],
  REQUEST_UNKNOWN: [404, 'RESOURCE_UNKNOWN', 'no'],
  METHOD_NOT_ALLOWED: [405, 'SERVICE_INVALID', 'no'],
  CLIENT_UNKNOWN: [401, 'TOKEN_UNKNOWN', 'no'],
  ENVIRONMENT_FORBIDDEN: [403, 'SERVICE_BLOCKED', 'no'],
  ENVIRONMENT_MISMATCH: [409, 'STATUS_INVALID', 'no'],
  DUPLICATE_MISMATCH: [409, 'STATUS_INVALID', 'no'],
  DUPLICATE_IN_FLIGHT: [409, 'STATUS_INVALID', 'no'],
  CONTRACT_VIOLATED: [400, 'FORMAT_ERROR', 'no'],
  DUPLICATE_IN_DOUBT: [409, 'STATUS_INVALID', 'maybe'],
  REQUEST_TIMEOUT: [408, 'FORMAT_ERROR', 'no'],
  BODY_TOO_LARGE: [413, 'FORMAT_ERROR', 'no'],
  EXPECTATION_FAILED: [417, 'FORMAT_ERROR', 'no'],
  HEADERS_TOO_LARGE: [431, 'FORMAT_ERROR', 'no'],
  QUOTA_EXCEEDED: [429, 'ACCESS_EXCEEDED', 'no'],
  QUEUE_FULL: [503, 'SERVICE_UNAVAILABLE', 'no'],
  QUEUE_TIMEOUT: [503, 'SERVICE_UNAVAILABLE', 'no'],
  CIRCUIT_OPEN: [503, 'SERVICE_UNAVAILABLE', 'no'],
  STATE_UNAVAILABLE: [503, 'SERVICE_UNAVAILABLE', 'no'],
  OVERLOADED: [503, 'SERVICE_UNAVAILABLE', 'no'],
  DRAINING: [503, 'SERVICE_UNAVAILABLE', 'no'],
  NOT_CACHED: [504, 'SERVICE_UNAVAILABLE', 'no'],
  UPSTREAM_UNREACHED: [502, 'SERVICE_UNAVAILABLE', 'no'],
  UPSTREAM_MALFORMED: [502, 'SERVICE_UNAVAILABLE', 'maybe'],
  OUTCOME_UNKNOWN: [504, 'SERVICE_UNAVAILABLE', 'maybe'],
  INTERNAL: [500, 'INTERNAL_SERVER_ERROR', 'maybe'],
};

const codes = Object.keys(contract) as ErrorCode[]; // the keys of a record are its keys
const text = 'A sentence with "quotes" and a \\.';

const failing = (code: ErrorCode) =>
  startApp(async () => {
    const headers = [['Retry-After', '3']] as const;
    throw new GatewayError(code, text, { environment: 'production', field: 'X-Field', headers });
  });

describe('an error response', () => {
  for (const code of codes) {
    const [status, tppCode, reached] = contract[code];

    test(`for ${code} is ${status} ${tppCode}, and ${reached === 'no' ? 'contains no advice' : 'advises not to initiate again'}`, async () => {
      const { app } = failing(code);
      const send = () => supertest(app).post(transfersPath).set('X-Request-ID', requestId).send('{}');

      const json = await send().expect(status);
      const problem = await send().set('Accept', 'application/problem+json').expect(status);

      for (const { headers } of [json, problem]) {
        assert.equal(headers['penstock-error'], code);
        assert.equal(headers['penstock-environment'], 'production');
        assert.equal(headers['x-request-id'], requestId);
        assert.equal(headers['retry-after'], '3');
        assert.equal(headers['cache-control'], 'no-store');
        assert.match(
          headers['proxy-status'] ?? '',
          /^penstock; error=[a-z_]+; details="A sentence with \\"quotes\\"/,
        );
      }
      const message = json.body.tppMessages[0];
      assert.equal(json.headers['content-type'], 'application/json');
      assert.deepEqual([message.category, message.code, message.path], ['ERROR', tppCode, 'X-Field']);
      assert.equal(problem.headers['content-type'], 'application/problem+json');
      assert.deepEqual([problem.body.type, problem.body.code], [`urn:penstock:error:${code}`, tppCode]);

      for (const detail of [message.text, problem.body.detail]) {
        assert.ok(detail.startsWith(detail === message.text ? `${code}: ${text}` : text));
        assert.equal(/do not initiate again/.test(detail), reached === 'maybe');
      }
    });
  }
});
