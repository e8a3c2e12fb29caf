/** Payments beside the listeners: a steady load in a thread of its own, so that the work of the TPP systems does not count as delay. */

import { setTimeout } from 'node:timers/promises';
import { createRequestSender } from '../measure/request-sender.ts';
import { percentile } from '../measure/statistics.ts';
import { initiation } from '../traffic.ts';

export interface PaymentLoad {
  /** Of the instances, in turn. */
  readonly ports: readonly number[];
  readonly apiKey: string;
  readonly perSecond: number;
  readonly seconds: number;
}

export interface PaymentDelays {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly errors: number;
}

/** Initiates payments at a steady rate, whether or not the former ones are answered. Connections are kept. */
export async function payAtSteadyRate({
  ports,
  apiKey,
  perSecond,
  seconds,
}: PaymentLoad): Promise<PaymentDelays> {
  const request = { ...initiation, headers: { ...initiation.headers, 'X-API-Key': apiKey } };
  const senders = ports.map((port) => createRequestSender(port, 32));
  const sent: Promise<number>[] = [];
  const startedAtMs = performance.now();
  while (sent.length < perSecond * seconds) {
    const sender = senders[sent.length % senders.length];
    if (sender) sent.push(sender.send(request, 201));
    const dueMs = startedAtMs + (sent.length * 1_000) / perSecond;
    await setTimeout(Math.max(0, dueMs - performance.now()));
  }
  const settled = await Promise.allSettled(sent);
  for (const sender of senders) sender.close();
  const tookMs = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  return {
    p50Ms: percentile(tookMs, 0.5),
    p99Ms: percentile(tookMs, 0.99),
    errors: sent.length - tookMs.length,
  };
}
