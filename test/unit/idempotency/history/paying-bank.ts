/** A bank that behaves as the history says, behind the very exchange that passes a request's fence. */

import { inEnvironment } from '../../../../src/flow/errors.ts';
import type { PisRequest, PisResponse } from '../../../../src/flow/messages.ts';
import { followExchange } from '../../../../src/upstream/exchange.ts';
import {
  answerHead,
  complete,
  connectedSocket,
  connectingSocket,
  requestOn,
  reset,
} from '../../upstream/fakes.ts';
import type { Process, Steps } from './steps.ts';

/** What becomes of a request: when it is carried out, if at all, and what is said of it when. Milliseconds after it came. */
interface Manner {
  readonly paysAfterMs?: number;
  readonly says?: number | 'reset';
  readonly saysAfterMs?: number;
}

export const manners = {
  pays: { paysAfterMs: 0, says: 201 },
  'pays, answers late': { paysAfterMs: 0, says: 201, saysAfterMs: 50_000 },
  'pays late': { paysAfterMs: 40_000, says: 201, saysAfterMs: 50_000 },
  'pays, loses the answer': { paysAfterMs: 0, says: 'reset' },
  'breaks off, pays later': { paysAfterMs: 60_000, says: 'reset' },
  'pays, never answers': { paysAfterMs: 0 },
  'pays, answers 504': { paysAfterMs: 0, says: 504 },
  'answers 503': { says: 503 },
  'breaks off': { says: 'reset' },
  'never answers': {},
  'is too busy': { says: 429 },
  refuses: { says: 400 },
  'refuses late': { says: 400, saysAfterMs: 50_000 },
  'is not there': {},
} as const satisfies Record<string, Manner>;

export type MannerName = keyof typeof manners;

/** One request of a TPP, and what has become of it. */
export interface Call {
  readonly tenant: string;
  readonly requestId: string;
  readonly body: string;
  readonly manner: MannerName;
  /** The instance that was asked. */
  readonly process: Process;
  /** The attempt that it made. */
  attempt?: string;
  /** When its first byte went: milliseconds since 1970. */
  sentAt?: number;
  /** Whether the bank may still carry it out. */
  mayPay?: boolean;
  /** The status of the answer that its instance has heard. */
  heard?: number;
}

export interface Payment {
  readonly paymentId: string;
  readonly call: Call;
  /** Milliseconds since 1970. */
  readonly madeAt: number;
}

export interface PayingBank {
  readonly payments: readonly Payment[];
  /** Carries a request to the bank, as the last stages do. */
  send(call: Call, request: PisRequest): Promise<PisResponse>;
}

const environment = 'sandbox';

export function createPayingBank(steps: Steps, network: Process): PayingBank {
  const payments: Payment[] = [];

  /** Time passes for the bank, which is never in a hurry even when it acts at once. */
  async function after(ms: number): Promise<void> {
    if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
    await steps.take(network);
  }

  async function pay(call: Call, ms: number): Promise<string> {
    call.mayPay = true;
    await after(ms);
    call.mayPay = false;
    const paymentId = `payment-${payments.length + 1}`;
    payments.push({ paymentId, call, madeAt: Date.now() });
    return paymentId;
  }

  return {
    payments,
    send(call, { deadlineAtMs, fence }) {
      const manner: Manner = manners[call.manner];
      const { promise, resolve, reject } = Promise.withResolvers<PisResponse>();
      const pass = () => fence?.pass(environment) ?? Promise.reject(new Error('a write without a fence'));
      const exchange = followExchange(
        { deadlineAtMs, connectMs: 2_000, fence: { pass, listenUntilMs: fence?.listenUntilMs ?? 0 } },
        {
          release: () => void act(),
          done(answer) {
            call.heard = answer.status;
            resolve({ ...answer, servedFrom: 'bank', environment });
          },
          lost: (error) => reject(inEnvironment(error, environment)),
          abandon() {},
        },
      );

      async function act(): Promise<void> {
        call.sentAt = Date.now();
        const { paysAfterMs, says, saysAfterMs = 0 } = manner;
        const paid = paysAfterMs === undefined ? undefined : pay(call, paysAfterMs);
        if (says === undefined) return;
        await after(saysAfterMs);
        const paymentId = says === 'reset' ? undefined : await paid;
        await steps.take(call.process);
        if (says === 'reset') return exchange.failed(reset);
        const answer = answerHead(says);
        exchange.answered(answer);
        answer.push(JSON.stringify({ paymentId }));
        complete(answer);
      }

      async function connect(): Promise<void> {
        await steps.take(call.process);
        const isThere = call.manner !== 'is not there';
        exchange.began(requestOn(isThere ? connectedSocket() : connectingSocket()));
        if (isThere) return;
        await steps.take(call.process);
        exchange.failed(new Error('refused'));
      }

      void connect();
      return promise;
    },
  };
}
