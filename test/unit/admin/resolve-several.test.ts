import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { previewInDoubt, resolveSeveral } from '../../../src/admin/resolve-several.ts';
import type { Resolution, ResolveResult } from '../../../src/idempotency/resolve.ts';
import type { AuditEvent } from '../../../src/request/audit-event.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import { bankResponse } from '../idempotency/bank-response.ts';
import { noAnswer, startInstance } from '../idempotency/instance.ts';
import { createNextStage } from '../idempotency/next-stage.ts';
import { initiation } from '../idempotency/requests.ts';

/** Three writes in doubt, an hour apart: two of `shop`, one of `rival`, which is in production. */
async function startThree(t: TestContext) {
  const { time, instance } = await startInstance(t);
  const from = Date.now();
  for (const [tenant, environment, id, outcome] of [
    ['shop', 'sandbox', 'with-504', bankResponse(504)],
    ['shop', 'sandbox', 'without-answer', noAnswer()],
    ['rival', 'production', 'of-the-rival', bankResponse(504)],
  ] as const) {
    const request = initiation({ tenant, requestId: id });
    const begun = await instance.begin(request, createNextStage(environment));
    await (outcome instanceof GatewayError ? begun.fail(outcome) : begun.respond(outcome));
    time.skip(3_600_000);
  }
  const { inDoubt } = instance.services;
  const events: AuditEvent[] = [];
  const resolutions: Resolution[] = [];
  const results: ('resolved' | 'too-early')[] = [];
  const resolve = async (resolution: Resolution): Promise<ResolveResult> => {
    resolutions.push(resolution);
    const kind = results.shift() ?? 'resolved';
    return kind === 'too-early' ? { kind, seconds: 1 } : { kind };
  };
  const audit = { record: async (event: AuditEvent) => void events.push(event) };
  return { time, from, inDoubt, dependencies: { inDoubt, resolve, audit }, events, resolutions, results };
}

const isoOf = (ms: number) => new Date(ms).toISOString();
const given = { who: 'olga', outcome: 'did-not-happen', reason: 'ticket 4711' } as const;

describe('a filter of requests in doubt', () => {
  test('selects by environment, tenant, operation, X-Request-ID, age, time and reason', async (t) => {
    const { from, inDoubt } = await startThree(t);
    for (const [filter, expected] of [
      [{ environment: 'sandbox' }, ['with-504', 'without-answer']],
      [{ environment: 'production' }, ['of-the-rival']],
      [{ environment: 'sandbox', tenant: 'rival' }, []],
      [{ environment: 'sandbox', why: 'outcome_unknown' }, ['without-answer']],
      [{ environment: 'sandbox', operation: 'cancelPayment' }, []],
      [{ environment: 'sandbox', operation: 'initiatePayment', why: '504' }, ['with-504']],
      [{ environment: 'sandbox', requestId: 'WITH-504' }, ['with-504']],
      [{ environment: 'sandbox', olderThanMs: 2.5 * 3_600_000 }, ['with-504']],
      [{ environment: 'sandbox', olderThanMs: 3 * 3_600_000 + 1 }, []],
      [{ environment: 'sandbox', from: isoOf(from + 1) }, ['without-answer']],
      [{ environment: 'sandbox', to: isoOf(from) }, ['with-504']],
    ] as const) {
      const { writes } = await previewInDoubt(inDoubt, filter);
      assert.deepEqual(
        writes.map(({ entry }) => entry.requestId),
        expected,
      );
    }
  });
});

describe('the resolution of several requests in doubt', () => {
  test('resolves exactly those of the preview, and is audited with the filter and the counts', async (t) => {
    const { inDoubt, dependencies, events, resolutions, results } = await startThree(t);
    const filter = { environment: 'sandbox' };
    const { selection, writes } = await previewInDoubt(inDoubt, filter);
    results.push('too-early', 'resolved');
    const outcome = await resolveSeveral(dependencies, { ...given, filter, selection });
    assert.deepEqual(outcome, { kind: 'done', resolved: 1, early: 1, gone: 0 });
    assert.deepEqual(
      resolutions,
      writes.map(({ id }) => ({ id, ...given, confirm: undefined })),
    );
    const details = { ...filter, reason: given.reason, selection, ...outcome };
    assert.deepEqual(events, [
      { who: 'olga', action: 'resolve in-doubt requests', outcome: 'did-not-happen', details },
    ]);
  });

  test('counts the age from the time of the preview, so that a request that grows old enough since then changes nothing', async (t) => {
    const { inDoubt, dependencies, resolutions, time } = await startThree(t);
    const filter = { environment: 'sandbox', olderThanMs: 2.5 * 3_600_000 };
    const { selection, writes } = await previewInDoubt(inDoubt, filter);
    time.skip(3_600_000);
    assert.equal((await previewInDoubt(inDoubt, filter)).writes.length, 2);
    const outcome = await resolveSeveral(dependencies, { ...given, filter, selection });
    assert.deepEqual(outcome, { kind: 'done', resolved: 1, early: 0, gone: 0 });
    assert.deepEqual(
      resolutions.map(({ id }) => id),
      writes.map(({ id }) => id),
    );
  });

  test('is refused and audited if other requests match than in the preview', async (t) => {
    const { inDoubt, dependencies, events, resolutions } = await startThree(t);
    const { selection } = await previewInDoubt(inDoubt, { environment: 'sandbox', why: '504' });
    const outcome = await resolveSeveral(dependencies, {
      ...given,
      filter: { environment: 'sandbox' },
      selection,
    });
    assert.deepEqual(outcome, { kind: 'changed' });
    assert.deepEqual(resolutions, []);
    assert.equal(events[0]?.outcome, 'refused');
  });

  test('stops when the state is unavailable, and is audited with what was resolved until then', async (t) => {
    const { inDoubt, dependencies, events } = await startThree(t);
    const filter = { environment: 'sandbox' };
    const { selection, writes } = await previewInDoubt(inDoubt, filter);
    const [, second] = writes;
    const failing = {
      ...dependencies,
      resolve: async (resolution: Resolution): Promise<ResolveResult> => {
        if (resolution.id === second?.id) throw new GatewayError('STATE_UNAVAILABLE', 'No state.');
        return { kind: 'resolved' };
      },
    };
    await assert.rejects(resolveSeveral(failing, { ...given, filter, selection }), /No state/);
    const [event] = events;
    assert.equal(event?.outcome, 'failed');
    assert.deepEqual(
      { resolved: event?.details.resolved, why: event?.details.why },
      { resolved: 1, why: 'No state.' },
    );
  });

  test('needs the name of production', async (t) => {
    const { inDoubt, dependencies, resolutions } = await startThree(t);
    const filter = { environment: 'production' };
    const { selection } = await previewInDoubt(inDoubt, filter);
    for (const confirm of [undefined, 'sandbox']) {
      const refused = await resolveSeveral(dependencies, { ...given, filter, selection, confirm });
      assert.deepEqual(refused, { kind: 'unconfirmed' });
    }
    assert.deepEqual(resolutions, []);
    const confirmed = { ...given, filter, selection, confirm: 'production' };
    assert.equal((await resolveSeveral(dependencies, confirmed)).kind, 'done');
    assert.deepEqual(
      resolutions.map(({ confirm }) => confirm),
      ['production'],
    );
  });
});
