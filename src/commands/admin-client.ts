/** The client of the admin API of a running gateway, with an operator's token. */

import { adminToken } from '../config/load.ts';
import type { Config } from '../config/schema.ts';

export interface AdminResponse {
  readonly ok: boolean;
  readonly status: number;
  readonly body: unknown;
}

/** @param path below `/api` @throws Error if no gateway answers */
export type AdminClient = (
  method: 'GET' | 'PUT' | 'POST',
  path: string,
  body?: unknown,
) => Promise<AdminResponse>;

/** @throws Error with a sentence that says what to do, if there is no token */
export function createAdminClient({ admin }: Config): AdminClient {
  const token = adminToken(admin);
  if (token === undefined) {
    throw new Error(
      'No token: set PENSTOCK_ADMIN_TOKEN (the gateway prints one at start if none is configured).',
    );
  }
  const host = admin.host.includes(':') ? `[${admin.host}]` : admin.host;
  const origin = `http://${host}:${admin.port}`;

  return async (method, path, body) => {
    try {
      const response = await fetch(`${origin}/api${path}`, {
        method,
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { ok: response.ok, status: response.status, body: await response.json() };
    } catch (cause) {
      throw new Error(`No gateway answers at ${origin}: is it running with this configuration?`, { cause });
    }
  };
}
