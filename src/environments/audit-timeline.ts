/** Switches and holds in the timeline: it takes them from the audit records of operators' actions. */

import { z } from 'zod';
import { lanes } from '../pis/operations.ts';
import type { AuditEvent } from '../request/audit-event.ts';
import type { Timeline, TimelineEvent } from '../telemetry/timeline.ts';
import type { AuditLog } from './audit-log.ts';

/** An audit log that records switches and holds in the timeline as well. */
export function recordInTimeline(audit: AuditLog, timeline: Pick<Timeline, 'record'>): AuditLog {
  return {
    ...audit,
    record(event) {
      const entry = timelineEventOf(event);
      if (entry) timeline.record({ ...entry, who: event.who });
      return audit.record(event);
    },
  };
}

const switched = z.object({
  environment: z.string(),
  reason: z.string(),
  from: z.string().optional(),
  version: z.int().optional(),
  why: z.string().optional(),
});

const held = z.object({
  environment: z.string(),
  lane: z.enum(lanes),
  hold: z.enum(['open', 'closed']).nullable(),
  reason: z.string(),
  until: z.string().optional(),
});

function timelineEventOf({ action, outcome, details }: AuditEvent): TimelineEvent | undefined {
  if (action === 'switch environment') {
    const { data } = switched.safeParse(details);
    return data && switchEvent(outcome, data);
  }
  if (action === 'hold circuit') {
    const { data } = held.safeParse(details);
    return data && holdEvent(outcome, data);
  }
  return undefined;
}

function switchEvent(outcome: string, data: z.output<typeof switched>): TimelineEvent {
  const { environment, from, why, reason } = data;
  const event = { kind: 'switch', environment, details: { outcome, ...data } } as const;
  switch (outcome) {
    case 'switched':
      return { ...event, text: `new payments go to ${environment} instead of ${from}: ${reason}` };
    case 'forced':
      return {
        ...event,
        text: `new payments go to ${environment} instead of ${from}, although the pre-flight failed: ${reason}`,
      };
    default:
      return { ...event, text: `switch to ${environment} ${outcome}: ${why}` };
  }
}

function holdEvent(outcome: string, data: z.output<typeof held>): TimelineEvent {
  const { environment, lane, hold, reason, until } = data;
  const failed = outcome === 'done' ? '' : '; the database did not confirm it';
  const change = hold ? `held ${hold} until ${until}` : 'released';
  return {
    kind: 'hold',
    environment,
    lane,
    text: `${lane} circuit of ${environment} ${change}: ${reason}${failed}`,
    details: { outcome, ...data },
  };
}
