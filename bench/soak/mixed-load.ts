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

  const anyPayment = () => payments[Math.floor(Math.random() * payments.length)];

  async function act(kind: Kind, known: Payment): Promise<boolean> {
    switch (kind) {
      case 'pay':
        return pay(randomUUID());
      case 'repeat':
        return (await ask(port, agent, initiation, known.requestId)).body.includes(known.id);
      case 'read':
        return (await ask(port, agent, paymentRead(known.id), randomUUID())).status === 200;
      case 'poll':
        return (await ask(port, agent, statusRead(known.id), randomUUID())).status === 200;
      case 'leave':
        return leave(port, initiation);
    }
  }

  async function pay(requestId: string): Promise<boolean> {
    const { status, body } = await ask(port, agent, initiation, requestId);
    if (status !== 201) return false;
    payments.push({ id: JSON.parse(body).paymentId, requestId });
    if (payments.length > remembered) payments.shift();
    return true;
  }

  async function one(): Promise<void> {
    const known = anyPayment();
    const kind = known ? (kinds[Math.floor(Math.random() * kinds.length)] ?? 'pay') : 'pay';
    const count = counts.get(kind);
    if (!count) return;
    count.asked++;
    if (await act(kind, known ?? { id: '', requestId: '' }).catch(() => false)) count.well++;
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
  };
}

function ask(
  port: number,
  agent: Agent,
  { method, path, headers, body }: Request,
  requestId: string,
): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const own = { ...headers, 'X-Request-ID': requestId };
    const call = startRequest({ host: '127.0.0.1', port, agent, method, path, headers: own });
    call.on('error', reject).on('response', (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
      });
      answer.on('error', reject).on('end', () => resolve({ status: answer.statusCode ?? 0, body: text }));
    });
    call.end(body);
  });
}

/** Sends a payment, and hangs up at once. */
function leave(port: number, { method, path, headers, body }: Request): Promise<boolean> {
  return new Promise((resolve) => {
    const own = { ...headers, 'X-Request-ID': randomUUID() };
    const call = startRequest({ host: '127.0.0.1', port, method, path, headers: own, agent: false });
    call.on('error', () => resolve(true)).on('finish', () => call.destroy());
    call.on('close', () => resolve(true)).end(body);
  });
}
