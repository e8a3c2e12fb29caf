/** Looks up requests on the public listener, as the developer of a TPP does. */

import assert from 'node:assert/strict';
import { type LookUpReport, lookUpReport } from '../../src/self-service/look-up-report.ts';
import { type Call, call, type Reply } from './call.ts';
import { apiKeyOf, type ClientName } from './two-environments.ts';
import { until } from './within.ts';

/** The settings with which TPPs can look up their requests. */
export const selfService = { requests: { selfService: true } };

/** One look-up. @param client one of two-environments.ts; without it, no key is sent */
export const lookUp = (
  { url }: { readonly url: string },
  client: ClientName | undefined,
  requestId: string,
  { method = 'GET', headers = [], ...more }: Partial<Call> = {},
): Promise<Reply> => {
  const key = client === undefined ? [] : ([['X-API-Key', apiKeyOf(client)]] as const);
  return call(url, { method, path: `/requests/${requestId}`, headers: [...headers, ...key], ...more });
};

/** A look-up that is repeated while there are too many of the tenant. */
export async function lookUpPatiently(...parameters: Parameters<typeof lookUp>): Promise<Reply> {
  let reply = await lookUp(...parameters);
  await until(20_000, 'the tenant may look up again', async () => {
    if (reply.header('Penstock-Error') !== 'QUOTA_EXCEEDED') return true;
    reply = await lookUp(...parameters);
    return false;
  });
  return reply;
}

/** What a look-up reports; fails unless it finds something. */
export async function reportOf(...parameters: Parameters<typeof lookUp>): Promise<LookUpReport> {
  const reply = await lookUpPatiently(...parameters);
  assert.equal(reply.status, 200, reply.text);
  const report: unknown = JSON.parse(reply.text);
  assert.deepEqual(lookUpReport.parse(report), report, 'it contains nothing that is not described');
  return lookUpReport.parse(report);
}
