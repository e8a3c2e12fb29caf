/**
 * Resolves all requests in doubt that match a filter. The operator names the selection of a preview, and nothing is resolved
 * if other requests match than in that preview.
 */

import { hash } from 'node:crypto';
import { isConfirmed } from '../environments/switch-environment.ts';
import type { InDoubtWrite, InDoubtWrites } from '../idempotency/recovery.ts';
import type { Resolution, Resolve } from '../idempotency/resolve.ts';
import type { AuditRecorder } from '../request/audit-event.ts';
import { asGatewayError } from '../request/errors.ts';

export interface InDoubtFilter {
  readonly environment: string;
  readonly tenant?: string | undefined;
  /** Bounds of the time of the request, both included, in ISO 8601. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** A part of the reason, in any letter case. */
  readonly why?: string | undefined;
}

export interface InDoubtPreview {
  /** Identifies exactly these requests. */
  readonly selection: string;
  /** Oldest first. */
  readonly writes: readonly InDoubtWrite[];
}

export interface SeveralResolution extends Pick<Resolution, 'who' | 'outcome' | 'reason'> {
  readonly filter: InDoubtFilter;
  /** Of the preview that the operator has seen. */
  readonly selection: string;
  /** The name of the environment again, as confirmation; required for production. */
  readonly confirm?: string | undefined;
}

export type SeveralOutcome =
  | { readonly kind: 'unconfirmed' }
  /** Other requests match than in the preview. */
  | { readonly kind: 'changed' }
  /** `early`: the bank may still execute them. `gone`: resolved since the preview by somebody else or by a late response. */
  | { readonly kind: 'done'; readonly resolved: number; readonly early: number; readonly gone: number };

interface Dependencies {
  readonly inDoubt: Pick<InDoubtWrites, 'all'>;
  readonly resolve: Resolve;
  readonly audit: AuditRecorder;
}

/** @throws GatewayError STATE_UNAVAILABLE */
export async function previewInDoubt(
  inDoubt: Pick<InDoubtWrites, 'all'>,
  filter: InDoubtFilter,
): Promise<InDoubtPreview> {
  const writes = (await inDoubt.all()).filter(({ entry }) => matches(entry, filter));
  const ids = writes.map(({ id }) => id).toSorted();
  return { selection: hash('sha256', ids.join(' '), 'hex').slice(0, 16), writes };
}

/**
 * Writes an audit record, also if the resolution is refused, and one for each resolved request.
 *
 * @throws GatewayError STATE_UNAVAILABLE; a part of the requests may have been resolved
 */
export async function resolveSeveral(
  { inDoubt, resolve, audit }: Dependencies,
  resolution: SeveralResolution,
): Promise<SeveralOutcome> {
  const { who, outcome, reason, filter, selection } = resolution;
  const record = (recordedOutcome: string, result: object) =>
    audit.record({
      who,
      action: 'resolve in-doubt requests',
      outcome: recordedOutcome,
      details: { ...filter, reason, selection, ...result },
    });
  try {
    const result = await attempt();
    await record(result.kind === 'done' ? outcome : 'refused', result);
    return result;
  } catch (thrown) {
    await record('failed', { why: asGatewayError(thrown).message });
    throw thrown;
  }

  async function attempt(): Promise<SeveralOutcome> {
    if (!isConfirmed(filter.environment, resolution.confirm)) return { kind: 'unconfirmed' };
    const preview = await previewInDoubt(inDoubt, filter);
    if (preview.selection !== selection) return { kind: 'changed' };
    const count = { resolved: 0, early: 0, gone: 0 };
    for (const { id } of preview.writes) {
      const { kind } = await resolve({ id, who, outcome, reason });
      if (kind === 'resolved') count.resolved += 1;
      else if (kind === 'too-early') count.early += 1;
      else count.gone += 1;
    }
    return { kind: 'done', ...count };
  }
}

function matches({ environment, tenant, since, why }: InDoubtWrite['entry'], filter: InDoubtFilter): boolean {
  return (
    environment === filter.environment &&
    (filter.tenant === undefined || tenant === filter.tenant) &&
    (filter.from === undefined || since >= Date.parse(filter.from)) &&
    (filter.to === undefined || since <= Date.parse(filter.to)) &&
    (filter.why === undefined || why.toLowerCase().includes(filter.why.toLowerCase()))
  );
}
