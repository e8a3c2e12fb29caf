/** A bank whose payments reach a final status by themselves. It counts initiations, and records when it has shown which status. */

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { listen } from '../../test/kit/ports.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';

export interface ProgressingBank {
  readonly baseUrl: string;
  /** By `X-Request-ID` of the initiation. */
  readonly payments: ReadonlyMap<string, BankPayment>;
  /** Initiations with an `X-Request-ID` that had created a payment. */
  repeats(): number;
  reads(): number;
  /** Reads with another token than that of the initiation. */
  refused(): number;
  /** Reads that were not answered, because the connection was lost, and when. */
  readonly lost: readonly { readonly payment: BankPayment; readonly atMs: number }[];
}

/** Times are milliseconds of `performance.now()`. */
export interface BankPayment {
  readonly id: string;
  readonly steps: readonly { readonly code: string; readonly fromMs: number }[];
  /** When each status was shown for the first time. */
  readonly shownMs: Map<string, number>;
  readonly readsMs: number[];
  readonly authorization: string | undefined;
}

/** How long the bank takes to answer. Milliseconds. */
const latencyMs = 300;
/** When a payment has its final status, after its initiation. Milliseconds. */
const [shortestMs, longestMs] = [15_000, 75_000];

export async function startProgressingBank(life: TestScope): Promise<ProgressingBank> {
  const payments = new Map<string, BankPayment>();
  const byId = new Map<string, BankPayment>();
  const lost: { payment: BankPayment; atMs: number }[] = [];
  const counts = { repeats: 0, reads: 0, refused: 0 };

  async function initiate(request: IncomingMessage, response: ServerResponse): Promise<void> {
    await setTimeout(latencyMs);
    const requestId = String(request.headers['x-request-id']);
    if (payments.has(requestId)) counts.repeats += 1;
    const payment = createPayment(payments.size, request.headers.authorization);
    payments.set(requestId, payment);
    byId.set(payment.id, payment);
    answer(response, 201, { transactionStatus: 'RCVD', paymentId: payment.id });
  }

  async function showStatus(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const payment = byId.get(/\/([^/]+)\/status$/.exec(request.url ?? '')?.[1] ?? '');
    if (!payment) return answer(response, 404, {});
    counts.reads += 1;
    if (request.headers.authorization !== payment.authorization) {
      counts.refused += 1;
      return answer(response, 401, {});
    }
    payment.readsMs.push(performance.now());
    response.on('close', () => {
      if (!response.writableFinished) lost.push({ payment, atMs: performance.now() });
    });
    await setTimeout(latencyMs);
    if (response.destroyed) return;
    const code = statusOf(payment);
    answer(response, 200, { transactionStatus: code });
    if (!payment.shownMs.has(code)) payment.shownMs.set(code, performance.now());
  }

  const server = createServer((request, response) => {
    const act = request.method === 'POST' ? initiate : showStatus;
    request.resume().on('end', () => void act(request, response));
  });
  server.keepAliveTimeout = 60_000;
  const port = await listen(server);
  life.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    payments,
    repeats: () => counts.repeats,
    reads: () => counts.reads,
    refused: () => counts.refused,
    lost,
  };
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

function createPayment(count: number, authorization: string | undefined): BankPayment {
  const nowMs = performance.now();
  const finalAfterMs = shortestMs + Math.random() * (longestMs - shortestMs);
  const parts = [
    ['RCVD', 0],
    ['ACTC', 0.3],
    ['ACSP', 0.6],
    [count % 5 === 0 ? 'RJCT' : 'ACCC', 1],
  ] as const;
  return {
    id: randomUUID(),
    steps: parts.map(([code, part]) => ({ code, fromMs: nowMs + part * finalAfterMs })),
    shownMs: new Map(),
    readsMs: [],
    authorization,
  };
}

/** The present status. */
function statusOf({ steps }: BankPayment): string {
  const nowMs = performance.now();
  return steps.findLast(({ fromMs }) => fromMs <= nowMs)?.code ?? '';
}

/** The status that the payment gets at last. */
export const finalStatusOf = ({ steps }: BankPayment): string => steps.at(-1)?.code ?? '';
