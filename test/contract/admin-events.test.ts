/** `GET /api/events`: what consoles are told, whoever reads it, however slowly. */

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import supertest from 'supertest';
import type { DashboardSources } from '../../src/admin/dashboard-snapshot.ts';
import type { SecondStats } from '../../src/telemetry/live-stats.ts';
import { call } from '../kit/call.ts';
import { listen } from '../kit/ports.ts';
import { until, within } from '../kit/within.ts';
import {
  asOperator,
  asReader,
  bankEnvironments,
  passedPreflight,
  startAdminApi,
} from './admin-api-under-test.ts';

interface Told {
  readonly name: string;
  readonly data: Readonly<Record<string, unknown>>;
}

async function serve(t: TestContext, sights: Partial<DashboardSources> = {}) {
  const operators = startAdminApi(passedPreflight, sights);
  const server = createServer(operators.app);
  const accepted: Socket[] = [];
  server.on('connection', (socket) => void accepted.push(socket));
  const port = await listen(server);
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { ...operators, accepted, port, url: `http://127.0.0.1:${port}` };
}

/** Reads events one by one. */
async function watch(url: string, headers: Readonly<Record<string, string>> = asOperator) {
  const response = await within(5_000, 'an answer', fetch(`${url}/api/events`, { headers }));
  const pieces = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  async function next(): Promise<Told | 'ended'> {
    const end = rest.indexOf('\n\n');
    if (end < 0) {
      const piece = await pieces?.read();
      if (!piece || piece.done) return 'ended';
      rest += piece.value;
      return next();
    }
    const [, name = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(rest.slice(0, end)) ?? [];
    rest = rest.slice(end + 2);
    return { name, data: JSON.parse(data) };
  }
  const told = async (): Promise<Told> => {
    const event = await within(5_000, 'an event', next());
    assert.ok(event !== 'ended');
    return event;
  };
  return { response, told, next: () => within(5_000, 'an event or the end', next()) };
}

const second = (at: number): SecondStats => ({
  at,
  requests: 3,
  refused: 1,
  failed: 0,
  p50Ms: 12,
  p99Ms: null,
  cache: { hit: 1, shared: 0, miss: 1, stale: 0, bypass: 0 },
});

describe('GET /api/events', () => {
  test('tells nothing without a token', async (t) => {
    const { url, app } = await serve(t);
    await supertest(app).get('/api/events').expect(401);
    assert.equal((await fetch(`${url}/api/events?token=token-of-olga`)).status, 401);
  });

  test('begins with a snapshot at once, and lets no proxy hold it back', async (t) => {
    const seconds = Array.from({ length: 400 }, (_, index) => second(index));
    const { url } = await serve(t, { recentSeconds: () => seconds, inDoubt: () => 2 });
    const { response, told } = await watch(url, asReader);
    assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    assert.equal(response.headers.get('x-accel-buffering'), 'no');
    assert.equal(response.headers.get('cache-control'), 'no-store');
    const { name, data } = await told();
    assert.equal(name, 'snapshot');
    assert.deepEqual(data.operator, { name: 'rita', role: 'read' });
    assert.deepEqual([data.inDoubt, data.active, data.circuits, data.shapers], [2, null, [], []]);
    assert.deepEqual(
      data.environments,
      bankEnvironments.map(({ circuits: _, ...one }) => one),
    );
    assert.deepEqual(data.seconds, seconds.slice(-300));
    assert.match(JSON.stringify(data.instance), /"startedAt":"\d{4}-/);
  });

  test('tells every second what has changed and what is new, the same to all who watch', async (t) => {
    let inDoubt = 0;
    let looked = 0;
    const seconds = [second(1)];
    const circuits = () => {
      looked += 1;
      return [];
    };
    const { url, events } = await serve(t, {
      recentSeconds: () => seconds,
      inDoubt: () => inDoubt,
      circuits,
    });
    events.tick();
    const watchers = [await watch(url), await watch(url, asReader)];
    for (const { told } of watchers) await told();
    const before = looked;
    events.tick();
    inDoubt = 1;
    seconds.push(second(2));
    events.tick();
    assert.equal(looked, before + 2, 'it was looked once for all');
    for (const { told } of watchers) {
      const [quiet, changed] = [await told(), await told()];
      assert.deepEqual([quiet.name, Object.keys(quiet.data)], ['tick', ['sample', 'seconds']]);
      assert.deepEqual(quiet.data.seconds, []);
      assert.deepEqual(Object.keys(changed.data), ['inDoubt', 'sample', 'seconds']);
      assert.deepEqual([changed.data.inDoubt, changed.data.seconds], [1, [second(2)]]);
    }
  });

  test('drops a reader who does not read, and goes on for the others', async (t) => {
    let round = 0;
    const large = () =>
      bankEnvironments.map((one) => ({ ...one, name: `${round}`, baseUrl: 'x'.repeat(500_000) }));
    const { url, port, events, accepted } = await serve(t, { environments: large });
    const slow = connect(port, '127.0.0.1').on('error', () => {}); // nobody listens to its data: it is not read
    t.after(() => slow.destroy());
    await once(slow, 'connect');
    slow.write('GET /api/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token-of-olga\r\n\r\n');
    const quick = await watch(url);
    await quick.told();
    await until(20_000, 'the slow one is dropped', async () => {
      round += 1;
      events.tick();
      const { name } = await quick.told();
      assert.equal(name, 'tick');
      return accepted[0]?.destroyed === true;
    });
    assert.ok(round < 100, `${round} MB`);
  });

  test('ends every stream with a word when the instance stops, and begins none any more', async (t) => {
    const { url, events } = await serve(t);
    const { told, next } = await watch(url);
    await told();
    events.end();
    assert.deepEqual(await told(), { name: 'end', data: { why: 'This instance is stopping.' } });
    assert.equal(await next(), 'ended');
    events.tick();
    const late = await fetch(`${url}/api/events`, { headers: asOperator });
    assert.deepEqual([late.status, await late.json()], [503, { error: 'This instance is stopping.' }]);
  });

  test('lets a hundred watch and no more, tells the next one so, and lets it in when somebody has gone', async (t) => {
    const { url } = await serve(t);
    const leaving = new AbortController();
    const begin = (signal?: AbortSignal) =>
      within(5_000, 'an answer', fetch(`${url}/api/events`, { headers: asOperator, signal: signal ?? null }));
    await begin(leaving.signal);
    await Promise.all(Array.from({ length: 99 }, () => begin()));
    const refused = await begin();
    assert.equal(refused.status, 503);
    assert.deepEqual(await refused.json(), { error: '100 watch this instance already.' });
    leaving.abort();
    await until(5_000, 'there is room', async () => (await begin()).status === 200);
  });

  test('answers HEAD with the head alone', async (t) => {
    const { url } = await serve(t);
    const headers = Object.entries(asOperator);
    const { status, text } = await call(url, { method: 'HEAD', path: '/api/events', headers });
    assert.deepEqual([status, text], [200, '']);
  });
});

describe('POST /api/environments/{name}/preflight', () => {
  test('tries an environment out and switches nothing; for operators who may', async () => {
    const { app } = startAdminApi();
    const path = '/api/environments/production/preflight';
    assert.deepEqual((await supertest(app).post(path).set(asOperator).expect(200)).body, passedPreflight);
    await supertest(app).post(path).set(asReader).expect(403);
    await supertest(app).post('/api/environments/nowhere/preflight').set(asOperator).expect(404);
    const { body } = await supertest(app).get('/api/environments').set(asOperator).expect(200);
    assert.deepEqual([body.active, body.version], ['sandbox', 1]);
  });
});
