/** The handlers for requests in doubt: list, export, preview, and record the outcome at the bank. */

import type { z } from 'zod';
import type { InDoubtWrite, InDoubtWrites } from '../idempotency/in-doubt.ts';
import type { Resolve } from '../idempotency/resolve.ts';
import type { AuditRecorder } from '../request/audit-event.ts';
import { AdminRefusal } from './admin-refusal.ts';
import { operatorOf } from './authenticate-operator.ts';
import { exportFileName, exportText, type ListedInDoubt } from './in-doubt-export.ts';
import { type InDoubtFilter, matches } from './in-doubt-filter.ts';
import type { inDoubtQuery } from './request-schemas.ts';
import { previewInDoubt, resolveSeveral } from './resolve-several.ts';
import type { AdminApi } from './routes.ts';
import { shareRead } from './shared-read.ts';

export interface InDoubtDependencies {
  readonly inDoubt: Pick<InDoubtWrites, 'all'>;
  readonly resolve: Resolve;
  readonly audit: AuditRecorder;
}

type InDoubtHandlers = Pick<
  AdminApi,
  'listInDoubt' | 'exportInDoubt' | 'previewInDoubt' | 'resolveSeveralInDoubt' | 'resolveInDoubt'
>;

export function createInDoubtHandlers({ inDoubt, resolve, audit }: InDoubtDependencies): InDoubtHandlers {
  /** During an outage of the bank, all consoles list thousands of requests whenever another one is added. */
  const readAll = shareRead(inDoubt.all);

  async function list(query: z.output<typeof inDoubtQuery>): Promise<readonly ListedInDoubt[]> {
    const [filter, now] = [filterOf(query), Date.now()];
    return (await readAll()).filter(({ entry }) => matches(entry, filter, now)).map(viewInDoubt);
  }

  return {
    listInDoubt: ({ query }) => list(query),

    async exportInDoubt({ query: { format, ...query }, response }) {
      const requests = await list(query);
      const fileName = exportFileName(format, Date.now());
      response.set('Content-Disposition', `attachment; filename="${fileName}"`).type(format);
      response.send(exportText(format, requests));
    },

    async previewInDoubt({ query: { environment, ...query } }) {
      const { selection, writes } = await previewInDoubt(inDoubt, { ...filterOf(query), environment });
      return { selection, requests: writes.map(viewInDoubt) };
    },

    async resolveSeveralInDoubt({ body, response }) {
      const { selection, outcome, reason, confirm, environment, ...query } = body;
      const who = operatorOf(response).name;
      const filter = { ...filterOf(query), environment };
      const resolution = { who, filter, selection, outcome, reason, confirm };
      const result = await resolveSeveral({ inDoubt, resolve, audit }, resolution);
      switch (result.kind) {
        case 'unconfirmed':
          throw new AdminRefusal(409, `Nothing was resolved: confirm must be "${environment}".`);
        case 'changed':
          throw new AdminRefusal(
            409,
            'Nothing was resolved: the matching requests have changed since the preview. Request the preview again.',
          );
        case 'done':
          return { resolved: result.resolved, early: result.early, gone: result.gone };
      }
    },

    async resolveInDoubt({ parameters: { id }, body, response }) {
      const result = await resolve({ ...body, id, who: operatorOf(response).name });
      switch (result.kind) {
        case 'resolved':
          return { id, outcome: body.outcome };
        case 'unknown':
          throw new AdminRefusal(404, 'No request in doubt has this id.');
        case 'unconfirmed':
          throw new AdminRefusal(
            409,
            `Not resolved: the gateway sends a repeat to the bank, so confirm must be "${result.environment}".`,
          );
        case 'foreign-payment':
          throw new AdminRefusal(409, 'This payment belongs to another tenant; nothing was changed.');
        case 'too-early':
          response.set('Retry-After', String(result.seconds));
          throw new AdminRefusal(
            409,
            `The bank may still execute the request: try again in ${result.seconds} s.`,
          );
      }
    },
  };
}

const filterOf = ({ olderThan: olderThanMs, ...rest }: z.output<typeof inDoubtQuery>): InDoubtFilter => ({
  ...rest,
  ...(olderThanMs !== undefined && { olderThanMs }),
});

function viewInDoubt({ id, entry }: InDoubtWrite): ListedInDoubt {
  const {
    requestId: xRequestId,
    operation,
    paymentId = null,
    environment,
    tenant,
    since,
    listenedUntil,
    why,
    outcome,
    otherAttempt,
    isFirstFactor,
  } = entry;
  return {
    id,
    xRequestId,
    operation,
    paymentId,
    environment,
    tenant,
    since: new Date(since).toISOString(),
    lateAnswerUntil: new Date(listenedUntil).toISOString(),
    bankAnswered: outcome !== undefined && otherAttempt === undefined,
    severity: isFirstFactor ? 'warning' : 'critical',
    why,
  };
}
