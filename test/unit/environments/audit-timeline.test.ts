import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAuditLog } from '../../../src/environments/audit-log.ts';
import { recordInTimeline } from '../../../src/environments/audit-timeline.ts';
import { createAuditTable } from '../../../src/store/audit.ts';
import type { TimelineEvent } from '../../../src/telemetry/timeline.ts';
import { newGatewayDatabase } from '../../kit/database.ts';

test('switches and holds appear in the timeline and in the audit log, with the name of the operator', async (t) => {
  const audit = createAuditLog(createAuditTable(await newGatewayDatabase(t)), () => {});
  const recorded: TimelineEvent[] = [];
  const both = recordInTimeline(audit, { record: (event) => void recorded.push(event) });
  const switched = {
    environment: 'production',
    reason: 'go live',
    force: false,
    from: 'sandbox',
    version: 2,
  };
  const held = { environment: 'sandbox', lane: 'write', hold: 'open', reason: 'maintenance' };
  const [who, switching, holding] = ['olga', 'switch environment', 'hold circuit'];
  await both.record({ who, action: switching, outcome: 'switched', details: switched });
  await both.record({ who, action: switching, outcome: 'forced', details: switched });
  await both.record({
    who,
    action: switching,
    outcome: 'refused',
    details: { environment: 'production', reason: 'go live', why: 'the pre-flight failed' },
  });
  await both.record({ who, action: holding, outcome: 'done', details: { ...held, until: '2026-01-31' } });
  await both.record({ who, action: holding, outcome: 'failed', details: { ...held, hold: null } });
  await both.record({ who, action: 'purge', outcome: 'done', details: {} });

  assert.deepEqual(
    recorded.map(({ kind, who, environment, lane, text }) => [kind, who, environment, lane, text]),
    [
      [
        'switch',
        'olga',
        'production',
        undefined,
        'new payments go to production instead of sandbox: go live',
      ],
      [
        ...['switch', 'olga', 'production', undefined],
        'new payments go to production instead of sandbox, although the pre-flight failed: go live',
      ],
      ['switch', 'olga', 'production', undefined, 'switch to production refused: the pre-flight failed'],
      [
        'hold',
        'olga',
        'sandbox',
        'write',
        'write circuit of sandbox held open until 2026-01-31: maintenance',
      ],
      [
        ...['hold', 'olga', 'sandbox', 'write'],
        'write circuit of sandbox released: maintenance; the database did not confirm it',
      ],
    ],
  );
  assert.equal((await both.newest(10)).length, 6);
});
