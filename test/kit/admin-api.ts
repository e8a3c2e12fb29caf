/** An operator: calls the operators' door with the token of the gateways under test. */

import { call, jsonOf, type Reply } from './call.ts';
import { adminToken, type GatewayUnderTest } from './gateway.ts';

type AdminListener = Pick<GatewayUnderTest, 'adminUrl'>;

/** One call, with a body if there is something to say. */
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
export async function switchEnvironment(door: AdminListener, environment: string): Promise<void> {
  const order = { environment, reason: 'a test', confirm: environment };
  const { status, text } = await callAdminApi(door, 'PUT', '/api/environments/active', order);
  if (status !== 200) throw new Error(text);
}

/** What the operators' API tells about something. */
export async function readAdminApi(
  door: AdminListener,
  path: string,
): Promise<Readonly<Record<string, unknown>>> {
  return jsonOf(await callAdminApi(door, 'GET', path));
}
