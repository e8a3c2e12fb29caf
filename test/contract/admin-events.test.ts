/** `GET /api/events`: content, limits and end of the event stream. */

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

interface DashboardEvent {
  readonly name: string;
  readonly data: Readonly<Record<string, unknown>>;
}

async function serve(t: TestContext, sources: Partial<DashboardSources> = {}, adminSettings: object = {}) {
  const api = startAdminApi(passedPreflight, sources, adminSettings);
  const server = createServer(api.app);
  const accepted: Socket[] = [];
  server.on('connection', (socket) => void accepted.push(socket));
  const port = await listen(server);
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { ...api, accepted, port, url: `http://127.0.0.1:${port}` };
}

/** Serves operators of a proxy: each name is one. */
async function serveMany(t: TestContext) {
  const { url } = await serve(
    t,
    {},
    { trustedProxies: ['127.0.0.1'], proxySignIn: { roles: { read: 'any' } } },
  );
  const open = (name: string, signal: AbortSignal | null = null) =>
    within(5_000, 'an answer', fetch(`${url}/api/events`, { headers: { 'X-Forwarded-User': name }, signal }));
  return { open };
}

/** Opens an event stream, and reads its events one by one. */
async function watch(url: string, headers: Readonly<Record<string, string>> = asOperator) {
  const response = await within(5_000, 'an answer', fetch(`${url}/api/events`, { headers }));
  const chunks = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = '';
  async function next(): Promise<DashboardEvent | 'ended'> {
    const end = buffer.indexOf('\n\n');
    if (end < 0) {
      const chunk = await chunks?.read();
      if (!chunk || chunk.done) return 'ended';
      buffer += chunk.value;
      return next();
    }
    const [, name = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(buffer.slice(0, end)) ?? [];
    buffer = buffer.slice(end + 2);
    return { name, data: JSON.parse(data) };
  }
  const nextEvent = async (): Promise<DashboardEvent> => {
    const event = await within(5_000, 'an event', next());
    assert.ok(event !== 'ended');
    return event;
  };
  return { response, nextEvent, next: () => within(5_000, 'an event or the end', next()) };
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
  test('answers 401 without a token in the Authorization header', async (t) => {
    const { url, app } = await serve(t);
    await supertest(app).get('/api/events').expect(401);
    assert.equal((await fetch(`${url}/api/events?token=token-of-olga`)).status, 401);
  });

  test('sends a snapshot of the last five minutes at once, and asks proxies not to buffer', async (t) => {
    const seconds = Array.from({ length: 400 }, (_, index) => second(index));
    const links = { grafana: 'https://grafana.example/?var-environment={environment}', traces: null };
    const { url } = await serve(t, {
      recentSeconds: () => seconds,
      inDoubt: () => 2,
      links: () => links,
    });
    const { response, nextEvent } = await watch(url, asReader);
    assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    assert.equal(response.headers.get('x-accel-buffering'), 'no');
    assert.equal(response.headers.get('cache-control'), 'no-store');
    const { name, data } = await nextEvent();
    assert.equal(name, 'snapshot');
    assert.deepEqual(data.operator, { name: 'rita', role: 'read' });
    assert.deepEqual([data.inDoubt, data.active, data.circuits, data.shapers], [2, null, [], []]);
    assert.deepEqual(data.links, links);
    assert.deepEqual(
      data.environments,
      bankEnvironments.map(({ circuits: _, ...one }) => one),
    );
    assert.deepEqual(data.seconds, seconds.slice(-300));
    assert.match(JSON.stringify(data.instance), /"startedAt":"\d{4}-/);
  });

  test('sends the same changes to all readers on each publish, from one snapshot', async (t) => {
    let inDoubt = 0;
    let snapshots = 0;
    const seconds = [second(1)];
    const circuits = () => {
      snapshots += 1;
      return [];
    };
    const { url, events } = await serve(t, {
      recentSeconds: () => seconds,
      inDoubt: () => inDoubt,
      circuits,
    });
    events.publish();
    const readers = [await watch(url), await watch(url, asReader)];
    for (const { nextEvent } of readers) await nextEvent();
    const before = snapshots;
    events.publish();
    inDoubt = 1;
    seconds.push(second(2));
    events.publish();
    assert.equal(snapshots, before + 2, 'one snapshot for all readers');
    for (const { nextEvent } of readers) {
      const [quiet, changed] = [await nextEvent(), await nextEvent()];
      assert.deepEqual([quiet.name, Object.keys(quiet.data)], ['tick', ['sample', 'seconds']]);
      assert.deepEqual(quiet.data.seconds, []);
      assert.deepEqual(Object.keys(changed.data), ['inDoubt', 'sample', 'seconds']);
      assert.deepEqual([changed.data.inDoubt, changed.data.seconds], [1, [second(2)]]);
    }
  });

  test('disconnects a client that does not read, and continues for the others', async (t) => {
    let round = 0;
    const large = () =>
      bankEnvironments.map((one) => ({ ...one, name: `${round}`, baseUrl: 'x'.repeat(500_000) }));
    const { url, port, events, accepted } = await serve(t, { environments: large });
    const slow = connect(port, '127.0.0.1').on('error', () => {}); // without a data listener, nothing is read
    t.after(() => slow.destroy());
    await once(slow, 'connect');
    slow.write('GET /api/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token-of-olga\r\n\r\n');
    const fast = await watch(url);
    await fast.nextEvent();
    await until(20_000, 'the slow client is disconnected', async () => {
      round += 1;
      events.publish();
      const { name } = await fast.nextEvent();
      assert.equal(name, 'tick');
      return accepted[0]?.destroyed === true;
    });
    assert.ok(round < 100, `${round} MB`);
  });

  test('sends an end event when the instance stops, and refuses new streams', async (t) => {
    const { url, events } = await serve(t);
    const { nextEvent, next } = await watch(url);
    await nextEvent();
    events.close();
    assert.deepEqual(await nextEvent(), { name: 'end', data: { why: 'This instance is stopping.' } });
    assert.equal(await next(), 'ended');
    events.publish();
    const late = await fetch(`${url}/api/events`, { headers: asOperator });
    assert.deepEqual([late.status, await late.json()], [503, { error: 'This instance is stopping.' }]);
  });

  test('refuses the hundred-and-first reader with 503 until another one disconnects', async (t) => {
    const { open } = await serveMany(t);
    const first = new AbortController();
    await open('operator 0', first.signal);
    await Promise.all(Array.from({ length: 99 }, (_, index) => open(`operator ${(index + 1) % 4}`)));
    const refused = await open('another operator');
    assert.equal(refused.status, 503);
    assert.deepEqual(await refused.json(), {
      error: 'The limit of 100 event streams per instance is reached; close one.',
    });
    first.abort();
    const isAccepted = async () => (await open('another operator')).status === 200;
    await until(5_000, 'a new reader is accepted', isAccepted);
  });

  test('refuses the fifty-first reader of one operator, so that the others can follow the events', async (t) => {
    const { open } = await serveMany(t);
    const statuses = await Promise.all(Array.from({ length: 60 }, async () => (await open('eve')).status));
    assert.deepEqual(
      [200, 503].map((status) => statuses.filter((one) => one === status).length),
      [50, 10],
    );
    assert.match(await (await open('eve')).text(), /The limit of 50 event streams per operator/);
    assert.equal((await open('ann')).status, 200);
  });

  test('answers HEAD without a body', async (t) => {
    const { url } = await serve(t);
    const headers = Object.entries(asOperator);
    const { status, text } = await call(url, { method: 'HEAD', path: '/api/events', headers });
    assert.deepEqual([status, text], [200, '']);
  });
});
