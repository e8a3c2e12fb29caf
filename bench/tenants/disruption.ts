/** One tenant that is poisoned, hangs or polls without end, and the payments of the other tenants beside it. */

import { createHash } from 'node:crypto';
import { Agent } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { type Call, callOnce, jsonOf } from '../../test/kit/call.ts';
import { type GatewayProcess, startGatewayProcess } from '../../test/kit/gateway-process.ts';
import { failuresIn, measureExchange, type Pace, startLoad } from '../../test/kit/load.ts';
import { startRedis } from '../../test/kit/redis.ts';
import { initiation, transfersPath } from '../../test/kit/request.ts';
import {
  type StubRequest,
  type StubResponse,
  startStubBank,
  statusResponse,
} from '../../test/kit/stub-bank.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';
import { closedWith, ms } from '../outage/measure.ts';

/** What a tenant does, on each instance. */
interface Disruption {
  readonly pace: Pace;
  /** @param paymentId a payment of this tenant */
  readonly call: (paymentId: string) => Call;
}

export const disruptions: Readonly<Record<string, Disruption>> = {
  /** The bank answers 500 to its payments. */
  poisoned: { pace: { perSecond: 50, maxInFlight: 120 }, call: () => paymentWith('poisoned') },
  /** The bank never answers its payments. */
  hanging: { pace: { perSecond: 100, maxInFlight: 120 }, call: () => paymentWith('hanging') },
  /** It polls a status that takes the bank half a second; no cache answers. */
  polling: {
    pace: { perSecond: 300, maxInFlight: 300 },
    call: (paymentId) => ({ method: 'GET', path: `${transfersPath}/${paymentId}/status` }),
  },
};

interface DisruptionRun {
  readonly tenants: number;
  readonly instances: number;
  readonly forMs: number;
}

/** By all other tenants together, on all instances. */
const paymentsPerSecond = 10;

/** @returns the other tenants' payments: how many, the share that was accepted, the slowest, and the other outcomes */
export async function measureDisruption(
  life: TestScope,
  disruption: Disruption,
  { tenants, instances, forMs }: DisruptionRun,
): Promise<readonly string[]> {
  const names = Array.from({ length: tenants }, (_, index) => `tenant-${index}`);
  const gateways = await startGateways(life, names, instances);
  const agent = closedWith(life, new Agent({ keepAlive: true }));
  const sendAs = (tenant: number, gateway: number, one: Call) => {
    const headers = [...(one.headers ?? []), ['X-API-Key', `key of tenant-${tenant}`] as const];
    return callOnce(gateways[gateway]?.url ?? '', { ...one, headers }, agent);
  };

  const paymentId = String(jsonOf(await sendAs(0, 0, initiation)).paymentId);
  const stop = new AbortController();
  const disruptive = gateways.map((_, gateway) =>
    startLoad(life, disruption.pace, () =>
      measureExchange({ ...disruption.call(paymentId), signal: stop.signal }, (one) =>
        sendAs(0, gateway, one),
      ),
    ),
  );
  await setTimeout(leadMs);
  const payments = await startLoad(
    life,
    { perSecond: paymentsPerSecond, forMs, maxInFlight: Infinity },
    (number) =>
      measureExchange(initiation, (one) => sendAs(1 + (number % (tenants - 1)), number % instances, one)),
  ).ended;
  const stopped = disruptive.map((load) => load.stop());
  stop.abort();
  await Promise.all(stopped);

  const accepted = payments.filter(({ came }) => !(came instanceof Error) && came.status === 201);
  return [
    String(payments.length),
    `${((100 * accepted.length) / payments.length).toFixed(1)} %`,
    ms(Math.max(...payments.map(({ tookMs }) => tookMs))),
    Object.entries(failuresIn(payments))
      .map(([what, times]) => `${times} × ${what}`)
      .join(', '),
  ];
}

/** For so long the disruptive tenant is alone: it takes all that it can get. */
const leadMs = 3_000;

/** The limits have their defaults: the test kit would raise them. */
async function startGateways(
  life: TestScope,
  tenants: readonly string[],
  instances: number,
): Promise<readonly GatewayProcess[]> {
  const bank = await startStubBank(life, respond);
  const sections = {
    environments: { active: 'sandbox', sandbox: { baseUrl: bank.baseUrl } },
    clients: tenants.map((name) => ({ name, apiKeySha256: sha256(`key of ${name}`) })),
    ...(instances > 1 && { state: { redis: (await startRedis(life)).url } }),
    statusCache: { enabled: false },
    circuit: { minimumCalls: 10 },
    shaping: { rate: '50/s', burst: 50, maxConcurrent: 100, queue: 1_000, expectedInstances: instances },
  };
  const gateways = [];
  for (let count = 0; count < instances; count++) gateways.push(await startGatewayProcess(life, sections));
  return gateways;
}

async function respond({ method, body }: StubRequest): Promise<StubResponse> {
  if (body.includes('poisoned')) return { status: 500 };
  if (body.includes('hanging')) return new Promise(() => {});
  await setTimeout(method === 'GET' ? 500 : 20);
  if (method === 'GET') return statusResponse('RCVD');
  paymentsMade++;
  const payment = { transactionStatus: 'RCVD', paymentId: `payment-${paymentsMade}`, _links: {} };
  return { status: 201, headers: [['Content-Type', 'application/json']], body: JSON.stringify(payment) };
}

let paymentsMade = 0;

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

const paymentWith = (word: string): Call => ({
  ...initiation,
  body: JSON.stringify({ ...JSON.parse(initiation.body), remittanceInformationUnstructured: word }),
});
