/** Stands for a running gateway, to which commands speak. */

import type { AdminClient, AdminResponse } from '../../../src/commands/admin-client.ts';

/** Answers every call like this. @returns the call, and what was asked */
export function fakeAdminClient(status: number, body: unknown) {
  const asked: unknown[][] = [];
  const call: AdminClient = async (...words): Promise<AdminResponse> => {
    asked.push(words);
    return { ok: status < 300, status, body };
  };
  return { call, asked };
}
