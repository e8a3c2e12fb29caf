/** Reports the changes of circuits, in the log and in the timeline. */

import type { Log } from '../../telemetry/log.ts';
import type { Timeline } from '../../telemetry/timeline.ts';
import type { CircuitChange } from './tenant-circuits.ts';

/** @returns is called with each change. Those of several tenants at once are one entry of the timeline. */
export function reportChanges(log: Log, timeline: Pick<Timeline, 'record'>): (change: CircuitChange) => void {
  let changes: CircuitChange[] = [];

  function record(): void {
    const groups = Map.groupBy(changes, ({ environment, lane, to, why }) =>
      JSON.stringify([environment, lane, to, why]),
    );
    changes = [];
    for (const [first, ...others] of groups.values()) if (first) timeline.record(entryOf(first, others));
  }

  return (change) => {
    const { environment, lane, tenant, from, to, why, cause } = change;
    const first = cause && { requestId: cause.xRequestId, cause: cause.why };
    log('warn', 'circuit state changed', { environment, lane, tenant, from, to, why, ...first });
    if (isProbeOnly(change)) return;
    if (changes.push(change) === 1) setImmediate(record);
  };
}

/** An open circuit probes the bank again and again. Only a result that changes the circuit belongs into the timeline. */
const isProbeOnly = ({ from, to }: CircuitChange) =>
  to === 'half-open' || (from === 'half-open' && to === 'open');

const maxTenants = 20;

function entryOf(first: CircuitChange, others: readonly CircuitChange[]) {
  const { environment, lane, from, to, why, cause } = first;
  const tenants = [first, ...others].map(({ tenant }) => tenant);
  const whose = others.length === 0 ? `tenant ${first.tenant}` : `${tenants.length} tenants`;
  return {
    kind: 'circuit',
    environment,
    lane,
    text: `${lane} circuit of ${environment}, ${whose}: ${changeTexts[to]}; ${why}`,
    details: { from, to, why, tenants: tenants.slice(0, maxTenants), ...(cause && { cause }) },
  } as const;
}

const changeTexts = {
  closed: 'closed',
  open: 'opened',
  'half-open': 'probing',
  probation: 'admits one call at a time',
} as const;
