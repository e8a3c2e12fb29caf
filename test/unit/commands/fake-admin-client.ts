/** A fake of the admin API for tests of commands. */

import type { AdminClient } from '../../../src/commands/admin-client.ts';
import type { AdminResponse } from '../../../src/commands/admin-response.ts';

/** A client that returns the response to each method and path, such as `GET /in-doubt`, and the arguments of all calls. */
export function fakeAdminApi(responses: Readonly<Record<string, unknown>>) {
  const calls: unknown[][] = [];
  const call: AdminClient = async (...words) => {
    calls.push(words);
    const [method, path] = words;
    return { ok: true, status: 200, body: responses[`${method} ${path}`] };
  };
  return { call, calls };
}

/** A client that returns the same response to every call, and the arguments of all calls. */
export function fakeAdminClient(status: number, body: unknown) {
  const calls: unknown[][] = [];
  const call: AdminClient = async (...words): Promise<AdminResponse> => {
    calls.push(words);
    return { ok: status < 300, status, body };
  };
  return { call, calls };
}
