/** Calls the admin API with the operator's token of the gateways under test. */

import { call, jsonOf, type Reply } from './call.ts';
import { adminToken, type GatewayUnderTest } from './gateway.ts';

type AdminListener = Pick<GatewayUnderTest, 'adminUrl'>;

export function callAdminApi(
  { adminUrl }: AdminListener,
  method: string,
  path: string,
  body?: object,
): Promise<Reply> {
  const headers = [
    ['Authorization', `Bearer ${adminToken}`],
    ['Content-Type', 'application/json'],
  ] as const;
  return call(adminUrl, { method, path, headers, ...(body && { body: JSON.stringify(body) }) });
}

/** Sends new payments to another environment, confirmed by its name. */
export async function switchEnvironment(gateway: AdminListener, environment: string): Promise<void> {
  const body = { environment, reason: 'a test', confirm: environment };
  const { status, text } = await callAdminApi(gateway, 'PUT', '/api/environments/active', body);
  if (status !== 200) throw new Error(text);
}

/** The JSON object at this path. */
export async function readAdminApi(
  gateway: AdminListener,
  path: string,
): Promise<Readonly<Record<string, unknown>>> {
  return jsonOf(await callAdminApi(gateway, 'GET', path));
}
