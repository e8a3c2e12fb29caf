/** The kinds of write, each with its own X-Request-ID, and how often the bank received and executed it. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { payerCredentials } from '../../src/simulated-bank/embedded-sca.ts';
import { type Call, call, jsonOf, type Reply } from './call.ts';
import { exampleOf } from './examples.ts';
import type { Field } from './fields.ts';
import { initiation, transfersPath } from './request.ts';

export type WriteName = 'initiation' | 'cancellation' | 'authorisation' | 'update';

export interface Write {
  readonly name: WriteName;
  readonly requestId: string;
  readonly call: Call;
  /** How often the bank received it. */
  timesReceived(): number;
  /** How many payments or authorisations it created, or TANs it checked; `undefined` for a cancellation. */
  effectCount(): number | undefined;
}

const factories: Readonly<Record<WriteName, (bank: SimulatedBank) => Promise<PreparedCall>>> = {
  initiation: async (bank: SimulatedBank) => ({
    call: initiation,
    effectCount: (requestId: string) =>
      bank.payments.filter((payment) => payment.requestId === requestId).length,
  }),
  cancellation: async (bank: SimulatedBank) => {
    const paymentId = await createPayment(bank);
    bank.setStatus(paymentId, 'ACTC'); // the response to the cancellation then has a body, which faults can affect
    return {
      call: { method: 'DELETE', path: `${transfersPath}/${paymentId}` },
      effectCount: () => undefined,
    };
  },
  authorisation: async (bank: SimulatedBank) => {
    const paymentId = await createPayment(bank);
    const path = `${transfersPath}/${paymentId}/authorisations`;
    const started = () => bank.payments.find((payment) => payment.paymentId === paymentId)?.authorisationIds;
    return {
      call: { ...exampleOf('start-authorisation'), method: 'POST', path },
      effectCount: () => started()?.length,
    };
  },
  update: async (bank: SimulatedBank) => {
    const paymentId = await createPayment(bank);
    const view = () => bank.payments.find((payment) => payment.paymentId === paymentId) ?? assert.fail();
    const authorisations = `${transfersPath}/${paymentId}/authorisations`;
    const body = JSON.stringify({ psuData: { password: payerCredentials.password } });
    const embedded = [...json, ['TPP-Embedded-Preferred', 'true']] as const;
    await call(bank.baseUrl, { method: 'POST', path: authorisations, headers: embedded, body });
    const path = `${authorisations}/${view().authorisationIds[0]}`;
    const method = JSON.stringify({ authenticationMethodId: '901' });
    await call(bank.baseUrl, { method: 'PUT', path, headers: json, body: method });
    const before = view().credentialChecks;
    return {
      call: {
        method: 'PUT',
        path,
        headers: json,
        body: JSON.stringify({ scaAuthenticationData: payerCredentials.tan }),
      },
      effectCount: () => view().credentialChecks - before,
    };
  },
};

const json: readonly Field[] = [['Content-Type', 'application/json']];

interface PreparedCall {
  readonly call: Call;
  readonly effectCount: (requestId: string) => number | undefined;
}

export const writeNames: readonly WriteName[] = ['initiation', 'cancellation', 'authorisation', 'update'];

/** What the bank answers to each. */
export const successStatus = {
  initiation: '201',
  cancellation: '202',
  authorisation: '201',
  update: '200',
} as const;

/** For gateways that get every kind of write. */
export const withUpdates = { standard: { alsoOffer: ['updatePsuData'] } };

/** A write that the bank accepts; creates the payment that it refers to, if there must be one. */
export async function newWrite(bank: SimulatedBank, name: WriteName): Promise<Write> {
  const { call: prepared, effectCount } = await factories[name](bank);
  const requestId = randomUUID();
  const headers = (prepared.headers ?? []).filter(([field]) => field !== 'X-Request-ID');
  const { method, path, body } = prepared;
  return {
    name,
    requestId,
    call: { method, path, body, headers: [['X-Request-ID', requestId], ...headers] },
    timesReceived: () => bank.requests.filter(({ rawHeaders }) => rawHeaders.includes(requestId)).length,
    effectCount: () => effectCount(requestId),
  };
}

/** A response in short: the status, and the gateway's error code or `replayed`. */
export function outcomeOf(reply: Reply): string {
  const code = reply.header('Penstock-Error');
  const replayed = reply.header('Idempotent-Replayed') === 'true' ? ' replayed' : '';
  return `${reply.status}${code === undefined ? replayed : ` ${code}`}`;
}

/** Initiates a payment without authorisation directly at the bank. @returns its id */
async function createPayment(bank: SimulatedBank): Promise<string> {
  const preference = 'TPP-Explicit-Authorisation-Preferred';
  const others = initiation.headers.filter(([name]) => name !== preference);
  const headers = [...others, [preference, 'true'] as const];
  return String(jsonOf(await call(bank.baseUrl, { ...initiation, headers })).paymentId);
}
