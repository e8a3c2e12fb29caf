/** Two instances with a load of payments in production, and what their alerts say: for tests that cause a problem and end it. */

import assert from 'node:assert/strict';
import { z } from 'zod';
import { severities } from '../../src/alerts/alert-table.ts';
import { callAdminApi } from './admin-api.ts';
import { type Call, call } from './call.ts';
import { type GatewayProcess, startGatewayProcess } from './gateway-process.ts';
import { measureExchange, startLoad } from './load.ts';
import { initiation } from './request.ts';
import {
  type StubBank,
  type StubRequest,
  type StubResponse,
  startStubBank,
  statusResponse,
} from './stub-bank.ts';
import type { TestScope } from './test-scope.ts';
import { until } from './within.ts';

const alertsShape = z.array(
  z.strictObject({
    id: z.string(),
    severity: z.enum(severities),
    environment: z.string().optional(),
    since: z.iso.datetime(),
    text: z.string().min(1),
    action: z.string().min(1),
    guide: z.url(),
    overSince: z.iso.datetime().optional(),
    instances: z.array(z.string()).optional(),
  }),
);

export type ShownAlert = z.output<typeof alertsShape>[number];

/** A bank whose answers to initiations the test decides; it accepts them at first. */
export interface DecidedBank {
  respond: ((request: StubRequest) => StubResponse | Promise<StubResponse> | undefined) | undefined;
  readonly stub: StubBank;
}

interface FleetOptions {
  readonly redis?: string | null;
  /** Where confirmed payments are safe. */
  readonly postgres: string;
  /** Of payments. */
  readonly perSecond?: number;
  readonly sections?: object;
}

let payments = 0;

export const created = (): StubResponse => ({
  ...statusResponse('RCVD', { paymentId: `payment-${++payments}` }),
  status: 201,
});

export const tppError = (status: number, code: string): StubResponse => ({
  status,
  headers: [['Content-Type', 'application/json']],
  body: JSON.stringify({ tppMessages: [{ category: 'ERROR', code }] }),
});

async function startDecidedBank(life: TestScope): Promise<DecidedBank> {
  const bank: { respond: DecidedBank['respond'] } = { respond: undefined };
  const stub = await startStubBank(life, (request) => bank.respond?.(request) ?? created());
  return Object.assign(bank, { stub });
}

export async function startWatchedFleet(
  life: TestScope,
  { redis = null, postgres, perSecond = 5, sections = {} }: FleetOptions,
) {
  const [production, sandbox] = await Promise.all([startDecidedBank(life), startDecidedBank(life)]);
  const settings = {
    environments: {
      active: 'production',
      production: { baseUrl: production.stub.baseUrl },
      sandbox: { baseUrl: sandbox.stub.baseUrl },
    },
    state: { postgres, redis },
    shaping: { rate: '50/s', expectedInstances: 2 },
    ...sections,
  };
  const first = await startGatewayProcess(life, settings);
  const instances: readonly GatewayProcess[] = [first, await startGatewayProcess(life, settings)];
  const load = startLoad(life, { perSecond }, (number) =>
    measureExchange(initiation, (one) => call(instances[number % 2]?.url ?? '', one)),
  );
  await load.hasSent(3 * perSecond);

  /** Those that need attention: of a gateway with one server of PostgreSQL, it is good to know that it has no standby. */
  async function serious(instance: GatewayProcess = first): Promise<readonly ShownAlert[]> {
    const { status, text } = await callAdminApi(instance, 'GET', '/api/alerts');
    assert.equal(status, 200, text);
    return alertsShape.parse(JSON.parse(text)).filter(({ severity }) => severity !== 'info');
  }

  const names = (alerts: readonly ShownAlert[]) =>
    alerts.map(({ severity, id }) => `${severity} ${id}`).toSorted();

  /** Waits until there are these alerts, at least. @returns them, and after how many seconds */
  async function untilAlerts(expected: readonly string[], instance: GatewayProcess = first) {
    const startedAtMs = performance.now();
    let found: readonly ShownAlert[] = [];
    await until(
      20_000,
      () => `there are the alerts ${expected.join()}; there are ${JSON.stringify(found)}`,
      async () => {
        found = await serious(instance);
        return expected.every((name) => names(found).includes(name));
      },
    );
    return { alerts: found, seconds: (performance.now() - startedAtMs) / 1_000 };
  }

  /** Waits until nothing needs attention any more. @returns after how many seconds */
  async function untilQuiet(instance: GatewayProcess = first): Promise<number> {
    const startedAtMs = performance.now();
    let found: readonly ShownAlert[] = [];
    await until(
      50_000,
      () => `there are no alerts; there are ${JSON.stringify(found)}`,
      async () => {
        found = await serious(instance);
        return found.length === 0;
      },
    );
    return (performance.now() - startedAtMs) / 1_000;
  }

  /** The screen of `penstock status`, and its exit code. */
  async function status(instance: GatewayProcess = first) {
    const command = instance.run('status');
    const exitCode = await command.exitCode();
    return { exitCode, screen: command.stdout() };
  }

  return {
    production,
    sandbox,
    settings,
    first,
    second: instances[1] ?? first,
    load,
    serious,
    untilAlerts,
    untilQuiet,
    status,
    pay: (more: Partial<Call> = {}) => call(first.url, { ...initiation, ...more }),
  };
}

export type WatchedFleet = Awaited<ReturnType<typeof startWatchedFleet>>;
