/**
 * Steady traffic for the demo: two TPPs pay with all outcomes, and a bank has moods, so that the operator console shows something.
 * The sequence is always the same; the times of the answers differ.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SimulatedBank } from './bank.ts';
import type { Fault, FaultScope } from './faults.ts';

export interface TrafficTpp {
  readonly apiKey: string;
  readonly webhookUrl: string;
}

interface TrafficOptions {
  /** Origin of the gateway. */
  readonly gateway: string;
  readonly tpps: readonly TrafficTpp[];
  /** The bank of the active environment. */
  readonly bank: SimulatedBank;
}

export interface Traffic {
  /** Aborts what is in progress. */
  stop(): Promise<void>;
}

/** One payment each second, and about five requests in all. */
const everyMs = 1_000;

/** What happens to the payments, in this order, again and again. Their count is odd: both TPPs get each of them. */
const outcomes = [
  'approved',
  'refused',
  'approved',
  'cancelled',
  'approved',
  'rejected',
  'approved',
  'repeated',
  'approved',
] as const;
type Outcome = (typeof outcomes)[number];

/** How the bank behaves, for how many payments, in this order, again and again. */
const moods: readonly { readonly payments: number; readonly fault?: Fault; readonly scope?: FaultScope }[] = [
  { payments: 25 },
  { payments: 10, fault: { name: 'latency', ms: 800 } },
  { payments: 20 },
  { payments: 8, fault: { name: 'rate-limit', perSecond: 4, burst: 2, retryAfterSeconds: 1 } },
  { payments: 20 },
  // Not of initiations: each of them would be in doubt.
  { payments: 8, fault: { name: 'status', status: 503 }, scope: { operation: 'getPaymentStatus' } },
];
const cycle = moods.reduce((sum, { payments }) => sum + payments, 0);

/** The bank executes these payments of each cycle, all of them in a good mood, and loses its response. */
const isLost = (number: number) => number % cycle === 5;

export function startTraffic({ gateway, tpps, bank }: TrafficOptions): Traffic {
  const stopping = new AbortController();
  const { signal } = stopping;
  const inProgress = new Set<Promise<void>>();
  let number = 0;

  const timer = setInterval(() => {
    changeMood(bank, number);
    if (isLost(number)) bank.injectFault({ name: 'reset' }, { operation: 'initiatePayment', times: 1 });
    const tpp = tpps[number % tpps.length];
    const outcome = isLost(number) ? 'repeated' : outcomes[number % outcomes.length];
    const amount = (1 + ((number * 7_919) % 50_000) / 100).toFixed(2); // 7,919 is prime: no two in a row are alike
    number += 1;
    if (!tpp || !outcome) return;
    const run = pay({ gateway, tpp, signal }, outcome, amount).catch((error: unknown) => {
      if (!signal.aborted) console.log(`traffic: ${error}`); // the next payment may succeed
    });
    inProgress.add(run);
    void run.finally(() => inProgress.delete(run));
  }, everyMs);

  return {
    async stop() {
      clearInterval(timer);
      stopping.abort();
      await Promise.all(inProgress);
    },
  };
}

/** Sets the fault of the mood that begins with this payment. */
function changeMood(bank: SimulatedBank, number: number): void {
  let start = 0;
  for (const { payments, fault, scope } of moods) {
    if (number % cycle === start) {
      bank.clearFaults();
      if (fault) bank.injectFault(fault, scope);
    }
    start += payments;
  }
}

interface Caller {
  readonly gateway: string;
  readonly tpp: TrafficTpp;
  readonly signal: AbortSignal;
}

interface Initiated {
  readonly paymentId: string;
  readonly _links: { readonly scaRedirect: { readonly href: string } };
}

const transfersPath = '/berlingroup/v1/payments/sepa-credit-transfers';

/** Initiates a payment, and does what its outcome needs; reads its status as a TPP does. */
async function pay(caller: Caller, outcome: Outcome, amount: string): Promise<void> {
  const requestId = randomUUID();
  const order = {
    instructedAmount: { currency: 'EUR', amount },
    debtorAccount: { iban: 'DE40100100103307118608' },
    creditorName: 'Merchant123',
    creditorAccount: { iban: 'DE02100100109307118603' },
  };
  // The bank answers 400 to a body that is not JSON.
  const body = outcome === 'refused' ? '{"instructedAmount":' : JSON.stringify(order);
  const initiate = () => send(caller, 'POST', transfersPath, { body, requestId });
  const first = await initiate();
  if (outcome === 'repeated') await initiate();
  if (first.status !== 201) return;
  const { paymentId, _links }: Initiated = JSON.parse(await first.text());
  const path = `${transfersPath}/${paymentId}`;

  await sleep(2 * everyMs, undefined, caller);
  if (outcome === 'cancelled') await send(caller, 'DELETE', path);
  else await decide(_links.scaRedirect.href, outcome === 'rejected' ? 'reject' : 'approve', caller);
  for (let read = 0; read < 3; read++) {
    await send(caller, 'GET', `${path}/status`);
    await sleep(2 * everyMs, undefined, caller);
  }
}

async function send(
  { gateway, tpp, signal }: Caller,
  method: string,
  path: string,
  { body, requestId = randomUUID() }: { readonly body?: string; readonly requestId?: string } = {},
): Promise<Response> {
  const headers = {
    'X-API-Key': tpp.apiKey,
    'X-Request-ID': requestId,
    'PSU-IP-Address': '192.0.2.1',
    ...(body !== undefined && {
      'Content-Type': 'application/json',
      'TPP-Notification-URI': tpp.webhookUrl,
    }),
  };
  return fetch(gateway + path, { method, headers, signal, ...(body !== undefined && { body }) });
}

/** What the payer does on the page of the bank. */
const decide = (page: string, decision: 'approve' | 'reject', { signal }: Caller) =>
  fetch(page, { method: 'POST', body: new URLSearchParams({ decision }), signal });
