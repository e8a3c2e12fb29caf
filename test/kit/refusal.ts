/** Asserts that a response is a complete refusal of the gateway. */

import assert from 'node:assert/strict';
import { jsonOf, type Reply } from './call.ts';
import { valuesOf } from './fields.ts';

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Proves that an answer is this refusal, said completely. `status`, `code`, and the Berlin Group's code. */
export function assertRefused(reply: Reply, status: number, code: string, tppCode: string): void {
  assert.deepEqual([reply.status, reply.header('Penstock-Error')], [status, code]);
  assert.match(reply.header('X-Request-ID') ?? '', uuid);
  assert.match(reply.header('Proxy-Status') ?? '', /^penstock; error=[a-z_]+; details="(?:[^"\\]|\\.)+"$/);
  for (const name of ['Penstock-Error', 'X-Request-ID', 'Proxy-Status', 'Content-Type', 'Date']) {
    assert.equal(valuesOf(reply.fields, name).length, 1, name);
  }
  assert.deepEqual(valuesOf(reply.fields, 'Cache-Control'), ['no-store']);
  assert.deepEqual(valuesOf(reply.fields, 'Content-Length'), [String(reply.body.length)]);
  assert.equal(codeIn(reply), tppCode);
}

/** The Berlin Group's message code, in either format of the body. */
function codeIn(reply: Reply): unknown {
  const body = jsonOf(reply);
  if (reply.header('Content-Type') === 'application/problem+json') return body.code;
  assert.equal(reply.header('Content-Type'), 'application/json');
  const [message] = Array.isArray(body.tppMessages) ? body.tppMessages : [];
  assert.equal(message?.category, 'ERROR');
  return message?.code;
}
