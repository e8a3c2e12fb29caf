/** The bank of a random history: two environments that count what they execute, and fail at random while the test lets them. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type ConnectionFate, createSimulatedServer, type SimulatedServer } from './simulated-connections.ts';
import type { SimulatedProcess } from './simulated-processes.ts';

export const environmentNames = ['sandbox', 'rehearsal'] as const;
export type EnvironmentName = (typeof environmentNames)[number];

/** What identifies a write; as text, the key of executions. */
export interface WriteKey {
  readonly tenant: string;
  readonly operation: 'initiatePayment' | 'cancelPayment';
  /** Empty for an initiation. */
  readonly paymentId: string;
  readonly requestId: string;
}

export const keyText = ({ tenant, operation, paymentId, requestId }: WriteKey): string =>
  `${tenant} ${operation} ${paymentId} ${requestId.toLowerCase()}`;

type RequestKey = Omit<WriteKey, 'operation'>;

type Answer = readonly [status: number, body: object | undefined];

export interface BankPayment {
  readonly environment: EnvironmentName;
  readonly paymentId: string;
  tenant: string;
  /**
   * Other tenants to which it may belong instead, because their mark for the same X-Request-ID was made before the bank received this one.
   * The first one that sees the payment has it (ADR 80).
   */
  readonly contenders: Set<string>;
  isCancelled: boolean;
}

interface HistoryBankOptions {
  readonly process: SimulatedProcess;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** How often it fails. */
  readonly faultRate: number;
  /** Whether it gives the payment of an X-Request-ID to everyone who sends that id again. */
  readonly recognisesRepeats: boolean;
  /** Whether both environments give the same ids. */
  readonly sharesIds: boolean;
  readonly tell: (event: string) => void;
  readonly onViolation: (what: string) => void;
  readonly onInitiation: (environment: EnvironmentName, key: RequestKey) => void;
}

export type HistoryBank = ReturnType<typeof createHistoryBank>;

/** How it fails. `isExecuted`: before it fails. */
type Failure = { readonly isExecuted: boolean; readonly how: 'silence' | 'reset' | 500 | 503 | 429 | 400 };

/** Until it executes a request; at least one, because the ledger compares the milliseconds of marks. */
const longestWorkMs = 10;
/** The same for a request that waits at the bank; an operator cannot say that it did not happen while its answer is awaited. */
const longestQueueMs = 5_000;
/** Longer than a deadline, so that some answers are late, and others are not awaited any more. */
const longestDelayMs = 16_000;

/** Each request names its tenant in `PSU-User-Agent`, which the gateway passes on. */
export function createHistoryBank({
  process,
  random,
  faultRate,
  recognisesRepeats,
  sharesIds,
  tell,
  onViolation,
  onInitiation,
}: HistoryBankOptions) {
  let isFailing = true;
  let created = 0;
  const executions = new Map<string, BankPayment[]>();
  const payments = new Map<string, BankPayment>();
  /** By X-Request-ID, for a bank that recognises repeats. */
  const recognised = new Map<string, BankPayment>();
  /** The tenants whose mark was made, and whose request the bank has not received: by environment and X-Request-ID. */
  const marks = new Map<string, Set<string>>();
  const chance = (probability: number) => random() < probability;
  const pick = <Each>(from: readonly Each[]): Each => from[Math.floor(random() * from.length)] as Each; // never empty

  function failureOf(): Failure | undefined {
    if (!isFailing || !chance(faultRate)) return undefined;
    const how = pick(['silence', 'silence', 'reset', 500, 503, 429, 400] as const);
    return { how, isExecuted: how !== 429 && how !== 400 && chance(0.5) };
  }

  async function serve(
    environment: EnvironmentName,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { method = '', url = '', headers } = request;
    await text(request);
    await sleep(1 + random() * (isFailing && chance(faultRate / 4) ? longestQueueMs : longestWorkMs));
    const tenant = String(headers['psu-user-agent']);
    const requestId = String(headers['x-request-id']).toLowerCase();
    const paymentId = url.split('/')[5] ?? '';
    const key = { tenant, paymentId, requestId };
    if (method === 'POST') {
      onInitiation(environment, key);
      marks.get(`${environment} ${requestId}`)?.delete(tenant);
    }
    const failure = failureOf();
    const how = failure ? `, ${failure.how}${failure.isExecuted ? ' after it is executed' : ''}` : '';
    tell(`bank: ${environment} ${method} ${paymentId} of ${tenant} ${requestId.slice(0, 4)}${how}`);
    const answer = failure?.isExecuted === false ? undefined : answerTo(environment, method, key);
    if (isFailing && chance(faultRate / 2)) await sleep(random() * longestDelayMs);
    if (failure?.how === 'silence') return;
    if (failure?.how === 'reset') return void response.socket?.destroy();
    const [status, body] = failure || !answer ? [failure?.how ?? 500, refusal] : answer;
    response.writeHead(status, body && { 'Content-Type': 'application/json' });
    response.end(body && JSON.stringify(body));
  }

  /** Executes it. */
  function answerTo(environment: EnvironmentName, method: string, key: RequestKey): Answer {
    const { tenant, paymentId } = key;
    if (method === 'POST') return [201, createdBody(initiate(environment, key))];
    const payment = payments.get(`${environment} ${paymentId}`);
    if (!payment) return [404, refusal];
    if (payment.tenant !== tenant && !payment.contenders.has(tenant))
      onViolation(`${tenant} reaches the payment ${paymentId} of ${payment.tenant} in ${environment}`);
    if (method === 'GET') return [200, statusBody(payment)];
    payment.isCancelled = true;
    execute({ ...key, operation: 'cancelPayment' }, payment);
    return [204, undefined];
  }

  function initiate(environment: EnvironmentName, key: RequestKey): BankPayment {
    const known = recognised.get(`${environment} ${key.requestId}`);
    if (recognisesRepeats && known) return known;
    created += 1;
    const paymentId = sharesIds
      ? `p${[...payments.values()].filter((one) => one.environment === environment).length + 1}`
      : `${environment}${created}`;
    const marked = recognisesRepeats ? (marks.get(`${environment} ${key.requestId}`) ?? []) : [];
    const contenders = new Set(marked);
    contenders.delete(key.tenant);
    const payment = { environment, paymentId, tenant: key.tenant, contenders, isCancelled: false };
    payments.set(`${environment} ${paymentId}`, payment);
    recognised.set(`${environment} ${key.requestId}`, payment);
    execute({ ...key, operation: 'initiatePayment' }, payment);
    return payment;
  }

  function execute(key: WriteKey, payment: BankPayment): void {
    const text = keyText(key);
    const all = [...(executions.get(text) ?? []), payment];
    executions.set(text, all);
    if (all.length > 1) onViolation(`the bank executes ${text} ${all.length} times`);
  }

  const servers = new Map<EnvironmentName, SimulatedServer>(
    environmentNames.map((name) => [
      name,
      createSimulatedServer(process, (request, response) => {
        serve(name, request, response).catch((thrown: unknown) => {
          if (!request.destroyed) onViolation(`the bank fails: ${thrown}`);
        });
      }),
    ]),
  );

  return {
    serverOf(environment: EnvironmentName): SimulatedServer {
      const server = servers.get(environment);
      if (!server) throw new Error(`there is no environment ${environment}`);
      return server;
    },
    fateOfConnection(): ConnectionFate {
      if (!isFailing || !chance(faultRate / 4)) return 'accepted';
      return chance(0.7) ? 'refused' : 'unanswered';
    },
    /** The payments that it has created or changed for a write. */
    executionsOf: (key: WriteKey): readonly BankPayment[] => executions.get(keyText(key)) ?? [],
    executedKeys: (): readonly string[] => [...executions.keys()],
    /** An initiation is marked as sending. */
    onMark(environment: string, { tenant, requestId }: Pick<WriteKey, 'tenant' | 'requestId'>): void {
      const text = `${environment} ${requestId}`;
      marks.set(text, (marks.get(text) ?? new Set()).add(tenant));
    },
    /** A TPP gets this payment. @returns whether it may */
    onSeen(environment: string, paymentId: string, tenant: string): boolean {
      const payment = payments.get(`${environment} ${paymentId}`);
      if (!payment) return false;
      if (payment.contenders.has(tenant)) payment.tenant = tenant;
      payment.contenders.clear();
      return payment.tenant === tenant;
    },
    payments: (): readonly BankPayment[] => [...payments.values()],
    /** No further failures. */
    heal() {
      isFailing = false;
    },
  };
}

/** Which payment it is, in a field that TPPs get. */
const describe = ({ environment, paymentId }: BankPayment): string => `${environment} ${paymentId}`;

const createdBody = (payment: BankPayment) => ({
  transactionStatus: 'RCVD',
  paymentId: payment.paymentId,
  psuMessage: describe(payment),
});

const statusBody = (payment: BankPayment) => ({
  transactionStatus: payment.isCancelled ? 'CANC' : 'ACTC',
  psuMessage: describe(payment),
});

const refusal = { tppMessages: [{ category: 'ERROR', code: 'SERVICE_UNAVAILABLE' }] };

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
