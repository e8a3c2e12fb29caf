/** What a day brings: payments, repeats of them, reads, polls, and callers who leave; at a fixed rate, in any order. */

import { randomUUID } from 'node:crypto';
import { Agent, request as startRequest } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { Request } from '../measure/load.ts';
import { initiation, paymentRead, statusRead } from '../traffic.ts';

/** Of a hundred requests. */
const shares = { pay: 10, repeat: 5, read: 20, poll: 60, leave: 5 } as const;

type Kind = keyof typeof shares;

export interface MixedLoad {
  run(ms: number): Promise<void>;
  /** A row each: what was asked, how often, how often it was answered as it should be, and how often not. */
  counts(): readonly (readonly string[])[];
  /** A row each: what was answered instead, to what, and how often. */
  otherwise(): readonly (readonly string[])[];
}

interface Payment {
  readonly id: string;
  readonly requestId: string;
}

/** How many payments are asked for again: the latest. */
const remembered = 1_000;

export function createMixedLoad(port: number, perSecond: number): MixedLoad {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const kinds = Object.entries(shares).flatMap(([kind, share]) => Array(share).fill(kind) as Kind[]);
  const counts = new Map(kinds.map((kind) => [kind, { asked: 0, well: 0 }]));
  const payments: Payment[] = [];
  const running = new Set<Promise<void>>();
  const otherwise = new Map<string, number>();

  const anyPayment = () => payments[Math.floor(Math.random() * payments.length)];

  /** @throws Error that says what was answered, if it is something else than it should be */
  async function act(kind: Kind, known: Payment): Promise<void> {
    switch (kind) {
      case 'pay':
        return pay(randomUUID());
      case 'repeat':
        return expected(await ask(port, agent, initiation, known.requestId), 201, known.id);
      case 'read':
        return expected(await ask(port, agent, paymentRead(known.id), randomUUID()), 200);
      case 'poll':
        return expected(await ask(port, agent, statusRead(known.id), randomUUID()), 200);
      case 'leave':
        return leave(port, initiation);
    }
  }

  async function pay(requestId: string): Promise<void> {
    const answer = await ask(port, agent, initiation, requestId);
    expected(answer, 201);
    payments.push({ id: JSON.parse(answer.body).paymentId, requestId });
    if (payments.length > remembered) payments.shift();
  }

  async function one(): Promise<void> {
    const known = anyPayment();
    const kind = known ? (kinds[Math.floor(Math.random() * kinds.length)] ?? 'pay') : 'pay';
    const count = counts.get(kind);
    if (!count) return;
    count.asked++;
    try {
      await act(kind, known ?? { id: '', requestId: '' });
      count.well++;
    } catch (thrown) {
      const what = `${kind}: ${thrown instanceof Error ? thrown.message : thrown}`;
      otherwise.set(what, (otherwise.get(what) ?? 0) + 1);
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
        const each = one().finally(() => running.delete(each));
        running.add(each);
      }
      await Promise.all(running);
      agent.destroy();
    },
    counts: () =>
      Array.from(counts, ([kind, { asked, well }]) => [kind, ...[asked, well, asked - well].map(String)]),
    otherwise: () => Array.from(otherwise, ([what, times]) => [what, String(times)]),
  };
}

interface Answer {
  readonly status: number;
  readonly body: string;
  /** Code of the gateway's own error, if it is one. */
  readonly error: string;
}

function expected({ status, body, error }: Answer, wanted: number, containing = ''): void {
  if (status !== wanted) throw new Error(`${status} ${error}`);
  if (!body.includes(containing)) throw new Error('another answer');
}

function ask(
  port: number,
  agent: Agent,
  { method, path, headers, body }: Request,
  requestId: string,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const own = { ...headers, 'X-Request-ID': requestId };
    const call = startRequest({ host: '127.0.0.1', port, agent, method, path, headers: own });
    call.on('error', reject).on('response', (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      answer.on('error', reject).on('end', () => {
        const error = String(answer.headers['penstock-error'] ?? '');
        resolve({ status: answer.statusCode ?? 0, body: text, error });
      });
    });
    call.end(body);
  });
}

/** Sends a payment, and hangs up at once. */
function leave(port: number, { method, path, headers, body }: Request): Promise<void> {
  return new Promise((resolve) => {
    const own = { ...headers, 'X-Request-ID': randomUUID() };
    const call = startRequest({ host: '127.0.0.1', port, method, path, headers: own, agent: false });
    call.on('error', () => resolve()).on('finish', () => call.destroy());
    call.on('close', () => resolve()).end(body);
  });
}
