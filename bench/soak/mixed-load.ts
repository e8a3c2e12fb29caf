/** A mix of payments, repeats, reads, polls and disconnects, in random order at a fixed rate. */

import { randomUUID } from 'node:crypto';
import { Agent, request as startRequest } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { BenchRequest } from '../measure/load.ts';
import { initiation, paymentRequest, statusRequest } from '../traffic.ts';

/** Percentages. */
const shares = { pay: 10, repeat: 5, read: 20, poll: 60, leave: 5 } as const;

type Kind = keyof typeof shares;

export interface MixedLoad {
  run(ms: number): Promise<void>;
  /** One row per kind: kind, sent, as expected, unexpected. */
  counts(): readonly (readonly string[])[];
  /** One row per unexpected result: kind with result, times. */
  unexpected(): readonly (readonly string[])[];
}

interface Payment {
  readonly id: string;
  readonly requestId: string;
}

/** The number of recent payments that later requests refer to. */
const maxPayments = 1_000;

export function createMixedLoad(port: number, perSecond: number): MixedLoad {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const kinds = Object.entries(shares).flatMap(([kind, share]) => Array(share).fill(kind) as Kind[]);
  const counts = new Map(kinds.map((kind) => [kind, { sent: 0, ok: 0 }]));
  const payments: Payment[] = [];
  const running = new Set<Promise<void>>();
  const unexpectedCounts = new Map<string, number>();

  const anyPayment = () => payments[Math.floor(Math.random() * payments.length)];

  /** @throws Error with the response if it is not the expected one */
  async function perform(kind: Kind, known: Payment): Promise<void> {
    switch (kind) {
      case 'pay':
        return pay(randomUUID());
      case 'repeat':
        return assertResponse(await sendRequest(port, agent, initiation, known.requestId), 201, known.id);
      case 'read':
        return assertResponse(await sendRequest(port, agent, paymentRequest(known.id), randomUUID()), 200);
      case 'poll':
        return assertResponse(await sendRequest(port, agent, statusRequest(known.id), randomUUID()), 200);
      case 'leave':
        return disconnectEarly(port, initiation);
    }
  }

  async function pay(requestId: string): Promise<void> {
    const response = await sendRequest(port, agent, initiation, requestId);
    assertResponse(response, 201);
    payments.push({ id: JSON.parse(response.body).paymentId, requestId });
    if (payments.length > maxPayments) payments.shift();
  }

  async function sendOne(): Promise<void> {
    const known = anyPayment();
    const kind = known ? (kinds[Math.floor(Math.random() * kinds.length)] ?? 'pay') : 'pay';
    const count = counts.get(kind);
    if (!count) return;
    count.sent++;
    try {
      await perform(kind, known ?? { id: '', requestId: '' });
      count.ok++;
    } catch (thrown) {
      const what = `${kind}: ${thrown instanceof Error ? thrown.message : thrown}`;
      unexpectedCounts.set(what, (unexpectedCounts.get(what) ?? 0) + 1);
    }
  }

  return {
    async run(ms) {
      const startMs = performance.now();
      await pay(randomUUID());
      for (let sent = 0; performance.now() - startMs < ms; ) {
        if (performance.now() < startMs + (sent * 1_000) / perSecond) {
          await setImmediate();
          continue;
        }
        sent++;
        const each = sendOne().finally(() => running.delete(each));
        running.add(each);
      }
      await Promise.all(running);
      agent.destroy();
    },
    counts: () => Array.from(counts, ([kind, { sent, ok }]) => [kind, ...[sent, ok, sent - ok].map(String)]),
    unexpected: () => Array.from(unexpectedCounts, ([what, times]) => [what, String(times)]),
  };
}

interface ReceivedResponse {
  readonly status: number;
  readonly body: string;
  /** The code of `Penstock-Error`, or an empty string. */
  readonly error: string;
}

function assertResponse({ status, body, error }: ReceivedResponse, wanted: number, containing = ''): void {
  if (status !== wanted) throw new Error(`${status} ${error}`);
  if (!body.includes(containing)) throw new Error('a different body');
}

function sendRequest(
  port: number,
  agent: Agent,
  { method, path, headers, body }: BenchRequest,
  requestId: string,
): Promise<ReceivedResponse> {
  return new Promise((resolve, reject) => {
    const own = { ...headers, 'X-Request-ID': requestId };
    const call = startRequest({ host: '127.0.0.1', port, agent, method, path, headers: own });
    call.on('error', reject).on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      response.on('error', reject).on('end', () => {
        const error = String(response.headers['penstock-error'] ?? '');
        resolve({ status: response.statusCode ?? 0, body: text, error });
      });
    });
    call.end(body);
  });
}

/** Sends a payment and disconnects immediately. */
function disconnectEarly(port: number, { method, path, headers, body }: BenchRequest): Promise<void> {
  return new Promise((resolve) => {
    const own = { ...headers, 'X-Request-ID': randomUUID() };
    const call = startRequest({ host: '127.0.0.1', port, method, path, headers: own, agent: false });
    call.on('error', () => resolve()).on('finish', () => call.destroy());
    call.on('close', () => resolve()).end(body);
  });
}
