/** Stands for a running gateway, to which commands speak. */

import type { AdminAnswer, CallAdmin } from '../../../src/commands/admin-client.ts';

/** Answers every call like this. @returns the call, and what was asked */
export function gatewaySaying(status: number, body: unknown) {
  const asked: unknown[][] = [];
  const call: CallAdmin = async (...words): Promise<AdminAnswer> => {
    asked.push(words);
    return { ok: status < 300, status, body };
  };
  return { call, asked };
}
