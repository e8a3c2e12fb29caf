/** Gateways that share one state in front of one bank, and every answer that their TPP systems receive. */

import { randomUUID } from 'node:crypto';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { call, type Reply } from './call.ts';
import { newMigratedPostgres } from './database.ts';
import { type GatewayUnderTest, type Sections, startBank, startGateway } from './gateway.ts';
import { startGatewayProcess } from './gateway-process.ts';

import { initiation } from './request.ts';
import { endWith, type TestScope } from './test-scope.ts';
import { until } from './within.ts';
import { outcomeOf } from './writes.ts';

/** A payment with its own X-Request-ID. */
export interface Payment {
  readonly requestId: string;
  /** The index of the instance that receives its first attempt. */
  readonly instance: number;
}

/** One attempt of a payment, and its answer. Times in milliseconds, on the clock of `performance.now()`. */
export interface Answer extends Payment {
  readonly sentAtMs: number;
  readonly endedAtMs: number;
  /** Status and error code, such as `409 DUPLICATE_IN_FLIGHT`; `no answer` if the connection broke. */
  readonly outcome: string;
  /** The body, or the error of the connection. */
  readonly text: string;
}

/** The addresses of a gateway. */
export type FleetInstance = Pick<GatewayUnderTest, 'url' | 'adminUrl'>;

export interface PaymentFleet<Instance extends FleetInstance = FleetInstance> {
  readonly bank: SimulatedBank;
  readonly instances: readonly Instance[];
  /** All answers so far, in the order in which they came. */
  readonly answers: readonly Answer[];
  /** Payments that have not been sent; the instances take turns. */
  newPayments(count: number): readonly Payment[];
  /** Sends an attempt of a payment. @param instance by default the one of its first attempt */
  send(payment: Payment, instance?: number): Promise<Answer>;
}

/** Longer than a paused instance and a slow machine take together. */
const maxAnswerMs = 90_000;

/**
 * Starts that many processes; ended with the test.
 *
 * @param redis `state.redis` of the configuration
 */
export const startPaymentFleet = (
  life: TestScope,
  redis: string | object | null,
  count: number,
  sections?: Sections,
) => startFleetOf(startGatewayProcess, life, redis, count, sections);

/** As `startPaymentFleet`, but in this process: for tests that neither kill nor pause an instance. They need much less CPU time. */
export const startLocalPaymentFleet = (
  life: TestScope,
  redis: string | object | null,
  count: number,
  sections?: Sections,
) => startFleetOf(startGateway, life, redis, count, sections);

/** The first instance sends a payment before the others start: its registration tells them that it has used the state. */
async function startFleetOf<Instance extends FleetInstance>(
  start: (life: TestScope, sections: Sections) => Promise<Instance>,
  life: TestScope,
  redis: string | object | null,
  count: number,
  sections: Sections = {},
): Promise<PaymentFleet<Instance>> {
  const bank = await startBank(life);
  const shared = {
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    upstream: { maxSockets: 512 },
    shaping: { expectedInstances: count },
    idempotency: { wait: '50ms' },
    deadlines: { write: '60s' },
    ...sections,
    state: {
      ...{ postgres: await newMigratedPostgres(), redis, prefix: `losses-${randomUUID()}:` },
      ...(sections.state as object | undefined), // as in the YAML file
    },
  };
  const instances = [await start(life, shared)];
  await sendFirstPayment(instances[0]?.url ?? '');
  const others = Array.from({ length: count - 1 }, () => start(life, shared));
  instances.push(...(await Promise.all(others)));
  const answers: Answer[] = [];
  let created = 0;

  return {
    bank,
    instances,
    answers,
    newPayments: (wanted) =>
      Array.from({ length: wanted }, () => ({ requestId: randomUUID(), instance: created++ % count })),
    async send(payment, instance = payment.instance) {
      const { requestId } = payment;
      const sentAtMs = performance.now();
      const came = await call(instances[instance]?.url ?? '', {
        ...initiation,
        requestId,
        maxMs: maxAnswerMs,
      }).catch((error: unknown) => String(error));
      const answer = { requestId, instance, sentAtMs, endedAtMs: performance.now(), ...summaryOf(came) };
      answers.push(answer);
      return answer;
    },
  };
}

const sendFirstPayment = (url: string): Promise<void> =>
  until(20_000, 'the first instance executes a payment', async () => {
    const reply = await call(url, { ...initiation, requestId: randomUUID(), maxMs: maxAnswerMs });
    return reply.status === 201;
  });

const summaryOf = (came: Reply | string) =>
  typeof came === 'string'
    ? { outcome: 'no answer', text: came }
    : { outcome: outcomeOf(came), text: came.text };

/** New payments at a steady pace, until they are stopped. */
export interface PaymentLoad {
  /** Waits until that many more payments have been sent. */
  hasSentMore(count: number): Promise<void>;
  /** Sends no more payments, and waits for all answers. */
  stop(): Promise<void>;
}

/** One each 10 ms; fewer while many have no answer, so that a slow machine is not overloaded. */
export function startPayments(life: TestScope, fleet: PaymentFleet): PaymentLoad {
  const paceMs = 10;
  const maxInFlight = 100;
  const sending = new Set<Promise<unknown>>();
  let sent = 0;
  const timer = setInterval(() => {
    if (sending.size >= maxInFlight) return;
    for (const payment of fleet.newPayments(1)) {
      sent += 1;
      const answer = fleet.send(payment).finally(() => sending.delete(answer));
      sending.add(answer);
    }
  }, paceMs);
  endWith(life, () => clearInterval(timer));
  return {
    hasSentMore(count) {
      const wanted = sent + count;
      return until(60_000, `${count} more payments are sent`, () => sent >= wanted);
    },
    async stop() {
      clearInterval(timer);
      await Promise.all(sending);
    },
  };
}

/** How often the bank received an initiation with each X-Request-ID. */
export function initiationCounts({ requests }: SimulatedBank): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { operation, rawHeaders } of requests) {
    if (operation !== 'initiatePayment') continue;
    const name = rawHeaders.findIndex((word, index) => index % 2 === 0 && /^x-request-id$/i.test(word));
    const requestId = rawHeaders[name + 1] ?? '';
    counts.set(requestId, (counts.get(requestId) ?? 0) + 1);
  }
  return counts;
}

/** The X-Request-IDs with which the bank received more than one initiation. */
export const paidTwice = (bank: SimulatedBank): readonly string[] =>
  [...initiationCounts(bank)].filter(([, times]) => times > 1).map(([requestId]) => requestId);
