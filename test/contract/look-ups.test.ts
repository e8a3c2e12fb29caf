/** Look-ups as the application of the public API serves them. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import supertest from 'supertest';
import { createLookUpService } from '../../src/http/serve-look-up.ts';
import { GatewayError } from '../../src/request/errors.ts';
import type { EndedLookUp } from '../../src/telemetry/observe-look-up.ts';
import { transfersPath } from '../kit/request.ts';
import { bankResponse, requestId, startApp } from './tpp-app-fixture.ts';

const client = { name: 'shop', tenant: 'merchants', environments: ['sandbox'] };
type Dependencies = Parameters<typeof createLookUpService>[0];

function startAppWith(more: Partial<Dependencies>) {
  const observed: EndedLookUp[] = [];
  const service = createLookUpService({
    admit: () => {},
    authenticate: () => client,
    lookUp: async () => ({ found: true }),
    observe: (one) => void observed.push(one),
    ...more,
  });
  return { observed, ...startApp(async () => bankResponse(), undefined, service) };
}

const path = `/requests/${requestId}`;

describe('the application of the public API', () => {
  test('passes the client and the id of a look-up on, and sends what is found', async () => {
    const asked: unknown[] = [];
    const lookUp = async (...parameters: unknown[]) => {
      asked.push(...parameters);
      return { found: true };
    };
    const { app, observed, received, refused } = startAppWith({ lookUp });
    const { body } = await supertest(app).get(path).expect(200, { found: true });
    assert.deepEqual([body, asked], [{ found: true }, [client, requestId]]);
    assert.deepEqual([received.length, refused.length], [0, 0]);
    assert.deepEqual([observed.length, observed[0]?.client, observed[0]?.error], [1, client, undefined]);
  });

  test('refuses look-ups together with status reads while the gateway is overloaded, before it identifies the client', async () => {
    const unused = () => assert.fail('it was refused before');
    const admit = (lane: string) => {
      assert.equal(lane, 'status');
      throw new GatewayError('OVERLOADED', 'Overloaded.');
    };
    const { app, observed } = startAppWith({ admit, authenticate: unused, lookUp: unused });
    const { headers } = await supertest(app).get(path).expect(503);
    assert.deepEqual([headers['penstock-error'], headers['retry-after']], ['OVERLOADED', '1']);
    assert.deepEqual([observed[0]?.client, observed[0]?.error?.code], [undefined, 'OVERLOADED']);
  });

  test('answers a bug in a look-up with INTERNAL, without its text', async () => {
    const lookUp = async () => assert.fail('the text of a bug');
    const { app, observed } = startAppWith({ lookUp });
    const { headers, text } = await supertest(app).get(path).expect(500);
    assert.equal(headers['penstock-error'], 'INTERNAL');
    assert.doesNotMatch(text, /the text of a bug/);
    assert.equal(observed[0]?.error?.code, 'INTERNAL');
  });

  test('does not take other requests for look-ups', async () => {
    const { app, observed, received, refused } = startAppWith({});
    await supertest(app).get(`${transfersPath}/1`).set('X-Request-ID', requestId).expect(200);
    await supertest(app).get('/requests').set('X-Request-ID', requestId).expect(404);
    await supertest(app).get(`/v1/requests/${requestId}`).set('X-Request-ID', requestId).expect(404);
    assert.deepEqual([observed.length, received.length, refused.length], [0, 1, 2]);
  });
});
