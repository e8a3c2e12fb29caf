/** A fake of the admin API for tests of commands. */

import type { AdminClient, AdminResponse } from '../../../src/commands/admin-client.ts';

/** A client that returns the same response to every call, and the arguments of all calls. */
export function fakeAdminClient(status: number, body: unknown) {
  const calls: unknown[][] = [];
  const call: AdminClient = async (...words): Promise<AdminResponse> => {
    calls.push(words);
    return { ok: status < 300, status, body };
  };
  return { call, calls };
}
