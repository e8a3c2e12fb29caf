/** A console in front of figures that a test makes up; everything else of it is real. */

import { createServer } from 'node:http';
import type { TestContext } from 'node:test';
import type { SecondStats } from '../../src/telemetry/live-stats.ts';
import { passedPreflight, startAdminApi } from '../contract/admin-api-under-test.ts';
import { listen } from '../kit/ports.ts';
import type { AdminAddress } from './browser.ts';

interface SampleDashboard extends AdminAddress {
  /** Of an operator who may change things. */
  readonly token: string;
  /** Ends another second. */
  addSecond(over: Partial<SecondStats>): void;
}

interface SampleOptions {
  readonly readiness?: { readonly ready: boolean; readonly reasons: readonly string[] };
  /** Of the certificate of the sandbox. */
  readonly daysLeft?: number;
}

/** Five minutes of seconds that are all alike. */
export async function startSampleDashboard(
  t: TestContext,
  shown: SampleOptions = {},
): Promise<SampleDashboard> {
  const { readiness = { ready: true, reasons: [] }, daysLeft = 200 } = shown;
  const now = Math.floor(Date.now() / 1_000);
  const seconds = Array.from({ length: 300 }, (_, index) => secondAt(now - 300 + index));
  const certificate = { subject: 'CN=tpp.example', notAfter: '2027-01-01T00:00:00.000Z', daysLeft };
  const { app, events } = startAdminApi(passedPreflight, {
    recentSeconds: () => seconds,
    readiness: () => readiness,
    environments: () => [
      {
        name: 'sandbox',
        baseUrl: 'https://bank.example',
        standardVersion: '1.3.11',
        certificate,
        signingCertificate: null,
      },
    ],
  });
  const server = createServer(app);
  const port = await listen(server);
  const ticking = setInterval(events.tick, 1_000);
  t.after(() => {
    clearInterval(ticking);
    server.close();
    server.closeAllConnections();
  });
  return {
    adminUrl: `http://127.0.0.1:${port}`,
    token: 'token-of-olga',
    addSecond(over) {
      seconds.push({ ...secondAt((seconds.at(-1)?.at ?? now) + 1), ...over });
      events.tick();
    },
  };
}

const secondAt = (at: number): SecondStats => ({
  at,
  requests: 7,
  refused: 0,
  failed: 1,
  p50Ms: 40,
  p99Ms: 1_200,
  cache: { hit: 4, shared: 1, miss: 1, stale: 0, bypass: 0 },
});
