/** Payments for operators: what is known of each, put together from the tables of payments, requests, writes and the audit log. */

import { setImmediate } from 'node:timers/promises';
import type { operations } from '../pis/operations.ts';
import { outcomeOf, type PaymentOutcome } from '../pis/transaction-status.ts';
import type {
  ListConditions,
  ListedPayment,
  ListPosition,
  OpenWrite,
  PaymentHistoryTable,
  PaymentRecord,
  StatusChange,
} from '../store/payment-history.ts';
import type { StoredMessage, WebhookMessageTable } from '../store/webhook-messages.ts';

/** `in-doubt`: a write of it is in doubt. `unknown`: no answer of the bank has shown its status. */
export const paymentOutcomes = [
  'in-doubt',
  'executed',
  'rejected',
  'cancelled',
  'pending',
  'unknown',
] as const satisfies readonly (PaymentOutcome | 'in-doubt' | 'unknown')[];

export interface PaymentView {
  readonly environment: string;
  readonly paymentId: string;
  readonly tenant: string;
  /** Service and product; `null` if they are not known. */
  readonly product: string | null;
  readonly createdAt: string;
  /** The last one that was seen. */
  readonly status: string | null;
  readonly statusSince: string | null;
  readonly outcome: (typeof paymentOutcomes)[number];
}

/** `read`: one that failed. `status`: the bank has shown a new one. `webhook`: a message to the TPP. `operator`: what an operator has done, other than a resolution. */
export const historyKinds = [
  'initiation',
  'authorisation',
  'update',
  'cancellation',
  'read',
  'status',
  'webhook',
  'running',
  'in-doubt',
  'resolution',
  'operator',
] as const;

/** An entry of the history; `null` for what it does not have. */
interface HistoryEntry {
  readonly at: string;
  readonly what: (typeof historyKinds)[number];
  readonly operation: string | null;
  readonly xRequestId: string | null;
  /** A transaction status, or the status of an HTTP response. */
  readonly status: string | null;
  readonly outcome: string | null;
  readonly error: string | null;
  readonly bankError: string | null;
  readonly text: string | null;
  /** The client or the operator. */
  readonly who: string | null;
}

interface PaymentFilter {
  /** Names. */
  readonly environment?: string | undefined;
  readonly tenant?: string | undefined;
  /** Service and product, or the product alone. */
  readonly product?: string | undefined;
  readonly status?: string | undefined;
  readonly outcome?: PaymentView['outcome'] | undefined;
  /** Times of the initiation: milliseconds since 1970, both included. */
  readonly fromMs?: number | undefined;
  readonly toMs?: number | undefined;
  readonly after?: ListPosition | undefined;
}

interface Page {
  readonly payments: readonly PaymentView[];
  /** Where the next page begins; `undefined` after the last one. */
  readonly next: ListPosition | undefined;
}

interface PaymentViewDependencies {
  readonly table: PaymentHistoryTable;
  readonly messages: Pick<WebhookMessageTable, 'ofPayment'>;
  readonly audit: {
    ofPayment(paymentId: string, count: number): Promise<readonly AuditRecordOfPayment[]>;
  };
  readonly names: {
    withNames<Fields extends { readonly tenant: string; readonly environment: string }>(
      fields: Fields,
    ): Fields;
    tenantIdOf(name: string): string;
    environmentIdOf(name: string): string;
  };
  /** How long records of requests are kept. Milliseconds. */
  readonly recordsKeptForMs: () => number;
}

interface AuditRecordOfPayment {
  readonly at: string;
  readonly who: string;
  readonly action: string;
  readonly outcome: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Payments of one page. */
const pageSize = 200;
/** With a filter, a page looks at so many payments at most, and at so many with one statement, which takes SQLite 4 to 8 ms. */
const maxLookedAt = 10_000;
const lookedAtOnce = 500;
const maxRecords = 200;
const maxAuditRecords = 100;

export type PaymentViews = ReturnType<typeof createPaymentViews>;

/** Every function @throws DatabaseError. */
export function createPaymentViews({
  table,
  messages,
  audit,
  names,
  recordsKeptForMs,
}: PaymentViewDependencies) {
  const viewOf = (payment: ListedPayment): PaymentView => {
    const { paymentId, initiatedAs, createdAt, status, statusSince } = payment;
    const { environment, tenant } = names.withNames(payment);
    return {
      environment,
      paymentId,
      tenant,
      product: initiatedAs ?? null,
      createdAt: isoTime(createdAt),
      status: status ?? null,
      statusSince: statusSince === undefined ? null : isoTime(statusSince),
      outcome: outcomeOfPayment(payment),
    };
  };

  async function listAll(conditions: ListConditions): Promise<Page> {
    const read = await table.list(conditions, pageSize);
    const next = read.length < pageSize ? undefined : positionOf(read.at(-1));
    return { payments: read.map(viewOf), next };
  }

  /** With a filter that the database does not know. The page may be short, although more follow. */
  async function listMatching(filter: PaymentFilter, conditions: ListConditions): Promise<Page> {
    const found: PaymentView[] = [];
    let after = conditions.after;
    for (let lookedAt = 0; lookedAt < maxLookedAt; lookedAt += lookedAtOnce) {
      const read = await table.list({ ...conditions, after }, lookedAtOnce);
      for (const payment of read) {
        const view = viewOf(payment);
        if (matches(view, filter)) {
          if (found.length === pageSize) return { payments: found, next: positionOf(after) };
          found.push(view);
        }
        after = payment;
      }
      if (read.length < lookedAtOnce) return { payments: found, next: undefined };
      await setImmediate(); // requests are served in between: SQLite answers in the same turn of the event loop
    }
    return { payments: found, next: positionOf(after) };
  }

  return {
    /** A page of the payments that match, newest first. */
    async list(filter: PaymentFilter): Promise<Page & { readonly initiationsInDoubt: number }> {
      const { environment, tenant, product, status, outcome, fromMs, toMs, after } = filter;
      const conditions: ListConditions = {
        environment: environment && names.environmentIdOf(environment),
        tenant: tenant && names.tenantIdOf(tenant),
        createdFrom: fromMs,
        createdTo: toMs,
        onlyInDoubt: outcome === 'in-doubt',
        after,
      };
      const isFiltered = product !== undefined || status !== undefined || outcome !== undefined;
      const initiationsInDoubt = await table.countInitiationsInDoubt();
      const page = await (isFiltered ? listMatching(filter, conditions) : listAll(conditions));
      return { ...page, initiationsInDoubt };
    },

    /** The payment and its history, the oldest entry first; `undefined` if there is none. */
    async find(
      environmentName: string,
      paymentId: string,
    ): Promise<
      | {
          readonly payment: PaymentView;
          readonly history: readonly HistoryEntry[];
          readonly complete: boolean;
        }
      | undefined
    > {
      const environment = names.environmentIdOf(environmentName);
      const payment = await table.find(paymentId, environment);
      if (!payment) return undefined;
      const [{ changes, complete: hasAllChanges }, newestRecords, writes, webhooks, audited] =
        await Promise.all([
          table.statuses(paymentId, environment),
          table.records(paymentId, payment.tenant, maxRecords + 1),
          table.openWrites(paymentId, environment),
          messages.ofPayment(paymentId, environment, payment.tenant),
          audit.ofPayment(paymentId, maxAuditRecords),
        ]);
      const records = newestRecords.slice(0, maxRecords);
      const isHere = (name: unknown) =>
        typeof name !== 'string' || names.environmentIdOf(name) === environment;
      const entries = [
        ...initiationOf(payment, changes, records),
        ...records.filter((record) => isHere(record.environment)).map(recordEntry),
        ...changes.map(statusEntry),
        ...writes.map(openEntry),
        ...webhooks.map(webhookEntry),
        ...audited.filter(({ details }) => isHere(details.environment)).map(auditEntry),
      ];
      const isRecorded = payment.createdAt > Date.now() - recordsKeptForMs();
      return {
        payment: viewOf({ ...payment, statusSince: changes.at(-1)?.seenAt }),
        history: entries.toSorted((one, other) => Date.parse(one.at) - Date.parse(other.at)),
        complete: isRecorded && hasAllChanges && newestRecords.length <= maxRecords,
      };
    },
  };
}

const isoTime = (ms: number): string => new Date(ms).toISOString();

const positionOf = (position: ListPosition | undefined): ListPosition | undefined =>
  position && {
    createdAt: position.createdAt,
    paymentId: position.paymentId,
    environment: position.environment,
  };

function outcomeOfPayment({ isInDoubt, status }: ListedPayment): PaymentView['outcome'] {
  if (isInDoubt) return 'in-doubt';
  return status === undefined ? 'unknown' : outcomeOf(status);
}

const matches = (view: PaymentView, { product, status, outcome }: PaymentFilter): boolean =>
  (product === undefined || view.product === product || (view.product ?? '').endsWith(`/${product}`)) &&
  (status === undefined || view.status === status) &&
  (outcome === undefined || view.outcome === outcome);

const nothing = {
  operation: null,
  xRequestId: null,
  status: null,
  outcome: null,
  error: null,
  bankError: null,
  text: null,
  who: null,
} as const;

/** If no record of the request is left. A payment without a product may have been initiated elsewhere. */
function initiationOf(
  { createdAt, initiatedAs }: ListedPayment,
  statuses: readonly StatusChange[],
  records: readonly PaymentRecord[],
): readonly HistoryEntry[] {
  if (initiatedAs === undefined || records.some(({ operation }) => operation === 'initiatePayment'))
    return [];
  const xRequestId = statuses.find(({ seenBy }) => seenBy === 'initiation')?.requestId ?? null;
  const operation = 'initiatePayment';
  const at = isoTime(createdAt);
  return [{ ...nothing, at, what: 'initiation', operation, xRequestId, outcome: 'succeeded' }];
}

const whatByOperation: Readonly<Record<string, HistoryEntry['what']>> = {
  initiatePayment: 'initiation',
  startAuthorisation: 'authorisation',
  updatePsuData: 'authorisation',
  updatePayment: 'update',
  cancelPayment: 'cancellation',
} satisfies Partial<Record<(typeof operations)[number]['name'], HistoryEntry['what']>>;

const recordEntry = (record: PaymentRecord): HistoryEntry => ({
  at: isoTime(record.receivedAt),
  what: whatByOperation[record.operation] ?? 'read',
  operation: record.operation,
  xRequestId: record.requestId,
  status: String(record.status),
  outcome: record.outcome,
  error: record.error ?? null,
  bankError: record.bankError ?? null,
  text: record.why ?? null,
  who: record.client ?? null,
});

const statusEntry = ({ status, seenAt, seenBy, requestId }: StatusChange): HistoryEntry => ({
  ...nothing,
  at: isoTime(seenAt),
  what: 'status',
  status,
  xRequestId: requestId ?? null,
  text: `seen by: ${seenBy}`,
});

const openEntry = ({ operation, requestId, claimedAt, why }: OpenWrite): HistoryEntry => ({
  ...nothing,
  at: isoTime(claimedAt),
  what: why === undefined ? 'running' : 'in-doubt',
  operation,
  xRequestId: requestId,
  text: why ?? null,
});

function webhookEntry(message: StoredMessage): HistoryEntry {
  const { attempts, endpoint, scaStatus, why } = message;
  const about = scaStatus === undefined ? '' : `; scaStatus ${scaStatus}`;
  const text = `to ${endpoint}, ${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}${about}`;
  return {
    ...nothing,
    at: isoTime(message.changedAtMs),
    what: 'webhook',
    xRequestId: message.id,
    status: message.transactionStatus,
    outcome: message.state,
    text: why === undefined ? text : `${text}; last failure: ${why}`,
    who: message.client,
  };
}

function auditEntry({ at, who, action, outcome, details }: AuditRecordOfPayment): HistoryEntry {
  const detail = (name: string) => {
    const value = details[name];
    return typeof value === 'string' ? value : null;
  };
  const reason = detail('reason');
  const isResolution = action === 'resolve in-doubt request';
  return {
    ...nothing,
    at,
    what: isResolution ? 'resolution' : 'operator',
    operation: detail('operation'),
    xRequestId: detail('requestId'),
    outcome,
    who,
    text: isResolution || reason === null ? (reason ?? action) : `${action}: ${reason}`,
  };
}
