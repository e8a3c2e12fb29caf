/** The report of the contract guard, as the admin API shows it. */

import assert from 'node:assert/strict';
import type { z } from 'zod';
import { contractComparison, contractReport } from '../../src/admin/contract-schemas.ts';
import { callAdminApi } from './admin-api.ts';
import type { GatewayUnderTest } from './gateway.ts';
import { until } from './within.ts';

export type ShownReport = z.output<typeof contractReport>;
export type ShownComparison = z.output<typeof contractComparison>;

/** Writes what the instance has counted, and reads what all instances have. @param query such as `?days=2` */
export async function contractReportOf(gateway: GatewayUnderTest, query = ''): Promise<ShownReport> {
  const reply = await callAdminApi(gateway, 'GET', `/api/contract${query}`);
  assert.equal(reply.status, 200, reply.text);
  return contractReport.parse(JSON.parse(reply.text));
}

/** The comparison of two environments. */
export async function comparisonOf(
  gateway: GatewayUnderTest,
  from = 'sandbox',
  to = 'production',
): Promise<ShownComparison> {
  const reply = await callAdminApi(gateway, 'GET', `/api/contract/compare?from=${from}&to=${to}`);
  assert.equal(reply.status, 200, reply.text);
  return contractComparison.parse(JSON.parse(reply.text));
}

/** Waits until what is read meets the condition: checks run behind the requests. */
export async function untilShown<Shown>(
  read: () => Promise<Shown>,
  condition: (shown: Shown) => boolean,
): Promise<Shown> {
  let shown = await read();
  await until(
    5_000,
    () => `another report than ${JSON.stringify(shown)}`,
    async () => {
      if (condition(shown)) return true;
      shown = await read();
      return condition(shown);
    },
  );
  return shown;
}

/** How many messages of an environment were checked. */
export const checkedIn = (
  { environments }: ShownReport,
  direction: 'requests' | 'responses',
  environment = 'sandbox',
): number => environments.find(({ name }) => name === environment)?.[direction].checked ?? 0;
