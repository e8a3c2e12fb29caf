/** A bank that behaves as the history says, behind the very exchange that passes a request's fence. */

import { withEnvironment } from '../../../../src/request/errors.ts';
import type { PisRequest, PisResponse } from '../../../../src/request/messages.ts';
import { createUpstreamCall } from '../../../../src/upstream/upstream-call.ts';
import {
  completeResponse,
  connectedSocket,
  connectingSocket,
  requestOn,
  reset,
  responseHead,
} from '../../upstream/upstream-call-fakes.ts';
import type { Scheduler, SimulatedProcess } from './scheduler.ts';

/** What becomes of a request: when it is carried out, if at all, and what is said of it when. Milliseconds after it came. */
interface Behaviour {
  readonly paysAfterMs?: number;
  readonly says?: number | 'reset';
  readonly saysAfterMs?: number;
}

export const behaviours = {
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
} as const satisfies Record<string, Behaviour>;

export type BehaviourName = keyof typeof behaviours;

/** One request of a TPP, and what has become of it. */
export interface TppCall {
  readonly tenant: string;
  readonly requestId: string;
  readonly body: string;
  readonly behaviour: BehaviourName;
  /** The instance that was asked. */
  readonly process: SimulatedProcess;
  /** The attempt that it made. */
  attempt?: string;
  /** When its first byte went: milliseconds since 1970. */
  sentAt?: number;
  /** Whether the bank may still carry it out. */
  mayPay?: boolean;
  /** The status of the answer that its instance has heard. */
  receivedStatus?: number;
}

export interface Payment {
  readonly paymentId: string;
  readonly call: TppCall;
  /** Milliseconds since 1970. */
  readonly madeAt: number;
}

export interface FakeBank {
  readonly payments: readonly Payment[];
  /** Carries a request to the bank, as the last stages do. */
  send(call: TppCall, request: PisRequest): Promise<PisResponse>;
}

const environment = 'sandbox';

export function createFakeBank(steps: Scheduler, network: SimulatedProcess): FakeBank {
  const payments: Payment[] = [];

  /** Time passes for the bank, which is never in a hurry even when it acts at once. */
  async function after(ms: number): Promise<void> {
    if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
    await steps.pause(network);
  }

  async function pay(call: TppCall, ms: number): Promise<string> {
    call.mayPay = true;
    await after(ms);
    call.mayPay = false;
    const paymentId = `payment-${payments.length + 1}`;
    payments.push({ paymentId, call, madeAt: Date.now() });
    return paymentId;
  }

  return {
    payments,
    send(call, { deadlineAtMs, writeAheadMark }) {
      const manner: Behaviour = behaviours[call.behaviour];
      const { promise, resolve, reject } = Promise.withResolvers<PisResponse>();
      const pass = () =>
        writeAheadMark?.markSending(environment) ?? Promise.reject(new Error('a write without a fence'));
      const exchange = createUpstreamCall(
        {
          deadlineAtMs,
          connectMs: 2_000,
          sendingMark: { markSending: pass, lateAnswerUntilMs: writeAheadMark?.lateAnswerUntilMs ?? 0 },
        },
        {
          sendBytes: () => void act(),
          onResponse(answer) {
            call.receivedStatus = answer.status;
            resolve({ ...answer, servedFrom: 'bank', environment });
          },
          onFailure: (error) => reject(withEnvironment(error, environment)),
          closeConnection() {},
        },
      );

      async function act(): Promise<void> {
        call.sentAt = Date.now();
        const { paysAfterMs, says, saysAfterMs = 0 } = manner;
        const paid = paysAfterMs === undefined ? undefined : pay(call, paysAfterMs);
        if (says === undefined) return;
        await after(saysAfterMs);
        const paymentId = says === 'reset' ? undefined : await paid;
        await steps.pause(call.process);
        if (says === 'reset') return exchange.onError(reset);
        const answer = responseHead(says);
        exchange.onResponse(answer);
        answer.push(JSON.stringify({ paymentId }));
        completeResponse(answer);
      }

      async function connect(): Promise<void> {
        await steps.pause(call.process);
        const isThere = call.behaviour !== 'is not there';
        exchange.onConnection(requestOn(isThere ? connectedSocket() : connectingSocket()));
        if (isThere) return;
        await steps.pause(call.process);
        exchange.onError(new Error('refused'));
      }

      void connect();
      return promise;
    },
  };
}
