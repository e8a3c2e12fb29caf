/**
 * Resolves all requests in doubt that match a filter. The operator names the selection of a preview, and nothing is resolved
 * if other requests match than in that preview.
 */

import { hash } from 'node:crypto';
import { isConfirmed } from '../config/production.ts';
import type { InDoubtWrite, InDoubtWrites } from '../idempotency/in-doubt.ts';
import type { Resolution, Resolve } from '../idempotency/resolve.ts';
import type { AuditRecorder } from '../request/audit-event.ts';
import { asGatewayError } from '../request/errors.ts';
import { type InDoubtFilter, matches } from './in-doubt-filter.ts';

/** All requests are in one environment, so that its name confirms the resolution. */
export interface SeveralFilter extends InDoubtFilter {
  readonly environment: string;
}

export interface InDoubtPreview {
  /** Identifies exactly these requests, and the time of the preview, from which their age is counted. */
  readonly selection: string;
  /** Oldest first. */
  readonly writes: readonly InDoubtWrite[];
}

export interface SeveralResolution extends Pick<Resolution, 'who' | 'outcome' | 'reason'> {
  readonly filter: SeveralFilter;
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

/** @param atMs milliseconds since 1970 @throws GatewayError STATE_UNAVAILABLE */
export async function previewInDoubt(
  inDoubt: Pick<InDoubtWrites, 'all'>,
  filter: SeveralFilter,
  atMs: number = Date.now(),
): Promise<InDoubtPreview> {
  const writes = (await inDoubt.all()).filter(({ entry }) => matches(entry, filter, atMs));
  const ids = writes.map(({ id }) => id).toSorted();
  return { selection: `${hash('sha256', ids.join(' '), 'hex').slice(0, 16)}-${atMs.toString(36)}`, writes };
}

/** The time of the preview; NaN if the selection is not one of `previewInDoubt`. */
const timeOf = (selection: string) => Number.parseInt(selection.split('-')[1] ?? '', 36);

/** How many requests are resolved at the same time: one after the other, thousands of them would take a minute. */
const resolvedAtOnce = 50;

/**
 * Writes an audit record, also if the resolution is refused, and one for each resolved request.
 *
 * @throws GatewayError STATE_UNAVAILABLE; a part of the requests may have been resolved
 */
export async function resolveSeveral(
  { inDoubt, resolve, audit }: Dependencies,
  resolution: SeveralResolution,
): Promise<SeveralOutcome> {
  const { who, outcome, reason, filter, selection, confirm } = resolution;
  const count = { resolved: 0, early: 0, gone: 0 };
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
    await record('failed', { ...count, why: asGatewayError(thrown).message });
    throw thrown;
  }

  async function attempt(): Promise<SeveralOutcome> {
    if (!isConfirmed(filter.environment, confirm)) return { kind: 'unconfirmed' };
    const preview = await previewInDoubt(inDoubt, filter, timeOf(selection));
    if (preview.selection !== selection) return { kind: 'changed' };
    const { writes } = preview;
    for (let start = 0; start < writes.length; start += resolvedAtOnce) {
      const results = await Promise.allSettled(writes.slice(start, start + resolvedAtOnce).map(resolveOne));
      for (const result of results) if (result.status === 'rejected') throw result.reason;
    }
    return { kind: 'done', ...count };
  }

  async function resolveOne({ id }: InDoubtWrite): Promise<void> {
    const { kind } = await resolve({ id, who, outcome, reason, confirm });
    if (kind === 'resolved') count.resolved += 1;
    else if (kind === 'too-early') count.early += 1;
    else count.gone += 1;
  }
}
