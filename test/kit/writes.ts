/** The three kinds of write, each with an X-Request-ID of its own, and what the bank has seen of it. */

import { randomUUID } from 'node:crypto';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { type Call, call, jsonOf, type Reply } from './call.ts';
import { exampleOf } from './examples.ts';
import { initiation, transfers } from './request.ts';

export type WriteName = 'initiation' | 'cancellation' | 'authorisation';

/** A write that can be sent, and sent again. */
export interface Write {
  readonly name: WriteName;
  readonly requestId: string;
  readonly call: Call;
  /** How often it has reached the bank. */
  timesReceived(): number;
  /** How many payments or authorisations have come of it; a cancellation leaves nothing to count. */
  effectCount(): number | undefined;
}

const makers: Readonly<Record<WriteName, (bank: SimulatedBank) => Promise<Made>>> = {
  initiation: async (bank: SimulatedBank) => ({
    call: initiation,
    effects: (requestId: string) => bank.payments.filter((payment) => payment.requestId === requestId).length,
  }),
  cancellation: async (bank: SimulatedBank) => {
    const paymentId = await createPayment(bank);
    bank.setStatus(paymentId, 'ACTC'); // it is answered with a body then, which can go wrong as well
    return { call: { method: 'DELETE', path: `${transfers}/${paymentId}` }, effects: () => undefined };
  },
  authorisation: async (bank: SimulatedBank) => {
    const paymentId = await createPayment(bank);
    const path = `${transfers}/${paymentId}/authorisations`;
    const started = () => bank.payments.find((payment) => payment.paymentId === paymentId)?.authorisationIds;
    return {
      call: { ...exampleOf('start-authorisation'), method: 'POST', path },
      effects: () => started()?.length,
    };
  },
};

interface Made {
  readonly call: Call;
  readonly effects: (requestId: string) => number | undefined;
}

export const writeNames: readonly WriteName[] = ['initiation', 'cancellation', 'authorisation'];

/** A write that the bank would gladly carry out; the payment it is about, if there must be one, is there already. */
export async function newWrite(bank: SimulatedBank, name: WriteName): Promise<Write> {
  const { call: made, effects } = await makers[name](bank);
  const requestId = randomUUID();
  const headers = (made.headers ?? []).filter(([field]) => field !== 'X-Request-ID');
  const { method, path, body } = made;
  return {
    name,
    requestId,
    call: { method, path, body, headers: [['X-Request-ID', requestId], ...headers] },
    timesReceived: () => bank.requests.filter(({ rawHeaders }) => rawHeaders.includes(requestId)).length,
    effectCount: () => effects(requestId),
  };
}

/** What a TPP is told: the status, and the gateway's own code or that it is a replay. */
export function outcomeOf(reply: Reply): string {
  const code = reply.header('Penstock-Error');
  const replayed = reply.header('Idempotent-Replayed') === 'true' ? ' replayed' : '';
  return `${reply.status}${code === undefined ? replayed : ` ${code}`}`;
}

/** A payment that nobody has begun to authorise, initiated at the bank itself. @returns its id */
async function createPayment(bank: SimulatedBank): Promise<string> {
  const wish = 'TPP-Explicit-Authorisation-Preferred';
  const others = initiation.headers.filter(([name]) => name !== wish);
  const headers = [...others, [wish, 'true'] as const];
  return String(jsonOf(await call(bank.baseUrl, { ...initiation, headers })).paymentId);
}
