/** A bank with a chosen behaviour per request, called through the gateway's own upstream call. */

import { withEnvironment } from '../../../../src/request/errors.ts';
import type { PisRequest, PisResponse } from '../../../../src/request/messages.ts';
import { createUpstreamCall } from '../../../../src/upstream/upstream-call.ts';
import { withMeaning } from '../../../kit/meaning.ts';
import {
  completeResponse,
  connectedSocket,
  connectingSocket,
  requestOn,
  reset,
  responseHead,
  setFakeDeadline,
} from '../../upstream/upstream-call-fakes.ts';
import type { Scheduler, SimulatedProcess } from './scheduler.ts';

/** When the bank executes a request and when it responds, if at all: milliseconds after it received the request. */
interface Behaviour {
  readonly paysAfterMs?: number;
  readonly responds?: number | 'reset';
  readonly respondsAfterMs?: number;
}

export const behaviours = {
  pays: { paysAfterMs: 0, responds: 201 },
  'pays, responds late': { paysAfterMs: 0, responds: 201, respondsAfterMs: 50_000 },
  'pays late': { paysAfterMs: 40_000, responds: 201, respondsAfterMs: 50_000 },
  'pays, then resets the connection': { paysAfterMs: 0, responds: 'reset' },
  'resets the connection, pays later': { paysAfterMs: 60_000, responds: 'reset' },
  'pays, never responds': { paysAfterMs: 0 },
  'pays, responds with 504': { paysAfterMs: 0, responds: 504 },
  'responds with 503': { responds: 503 },
  'resets the connection': { responds: 'reset' },
  'never responds': {},
  'responds with 429': { responds: 429 },
  'responds with 401': { responds: 401 },
  'responds with 400': { responds: 400 },
  'responds with 400 late': { responds: 400, respondsAfterMs: 50_000 },
  'refuses connections': {},
} as const satisfies Record<string, Behaviour>;

export type BehaviourName = keyof typeof behaviours;

/** One request of a TPP, and what happened to it. */
export interface TppCall {
  readonly tenant: string;
  readonly requestId: string;
  readonly body: string;
  readonly behaviour: BehaviourName;
  /** The instance that received the request. */
  readonly process: SimulatedProcess;
  /** The id of its attempt in the ledger. */
  attempt?: string;
  /** When its first byte was sent: milliseconds since 1970. */
  sentAt?: number;
  /** Whether the bank may still execute it. */
  mayPay?: boolean;
  /** The status that its instance received from the bank. */
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
  /** Sends a request to the bank, as the last stages of the pipeline do. */
  send(call: TppCall, request: PisRequest): Promise<PisResponse>;
}

const environment = 'sandbox';

export function createFakeBank(scheduler: Scheduler, network: SimulatedProcess): FakeBank {
  const payments: Payment[] = [];

  /** Takes a scheduler step even if there is no delay. */
  async function delay(ms: number): Promise<void> {
    if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
    await scheduler.pause(network);
  }

  async function pay(call: TppCall, ms: number): Promise<string> {
    call.mayPay = true;
    await delay(ms);
    call.mayPay = false;
    const paymentId = `payment-${payments.length + 1}`;
    payments.push({ paymentId, call, madeAt: Date.now() });
    return paymentId;
  }

  return {
    payments,
    send(call, { operation, deadlineAtMs, writeAheadMark }) {
      const behaviour: Behaviour = behaviours[call.behaviour];
      const { promise, resolve, reject } = Promise.withResolvers<PisResponse>();
      const markSending = () =>
        writeAheadMark?.markSending(environment) ??
        Promise.reject(new Error('a write without a write-ahead mark'));
      const upstreamCall = createUpstreamCall(
        {
          deadlineAtMs,
          connectMs: 2_000,
          sendingMark: {
            markSending,
            onDeadline() {}, // called by the transport
            lateAnswerUntilMs: deadlineAtMs + (writeAheadMark?.lateAnswerMs ?? 0),
          },
        },
        {
          sendBytes: () => void respond(),
          onResponse(response) {
            call.receivedStatus = response.status;
            resolve(withMeaning(operation, { ...response, servedFrom: 'bank', environment }));
          },
          onFailure: (error) => reject(withEnvironment(error, environment)),
          onLate: () => writeAheadMark?.onDeadline(),
          closeConnection() {},
        },
        setFakeDeadline,
        (run) => run(),
      );

      async function respond(): Promise<void> {
        call.sentAt = Date.now();
        const { paysAfterMs, responds, respondsAfterMs = 0 } = behaviour;
        const paid = paysAfterMs === undefined ? undefined : pay(call, paysAfterMs);
        if (responds === undefined) return;
        await delay(respondsAfterMs);
        const paymentId = responds === 'reset' ? undefined : await paid;
        await scheduler.pause(call.process);
        if (responds === 'reset') return upstreamCall.onError(reset);
        const response = responseHead(responds);
        upstreamCall.onResponse(response);
        response.push(JSON.stringify({ paymentId }));
        completeResponse(response);
      }

      async function connect(): Promise<void> {
        await scheduler.pause(call.process);
        const isReachable = call.behaviour !== 'refuses connections';
        upstreamCall.onConnection(requestOn(isReachable ? connectedSocket() : connectingSocket()));
        if (isReachable) return;
        await scheduler.pause(call.process);
        upstreamCall.onError(new Error('refused'));
      }

      void connect();
      return promise;
    },
  };
}
