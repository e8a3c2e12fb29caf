/** `penstock audit verify`: verifies the hash chain of the audit log. */

import { z } from 'zod';
import type { AdminClient } from './admin-client.ts';
import type { CommandOutput } from './command-output.ts';

const verificationBody = z.object({ records: z.number(), broken: z.string().optional() });

/** Exit code 1 if a record was altered, removed or inserted. */
export async function verifyAudit(call: AdminClient): Promise<CommandOutput> {
  const response = await call('GET', '/audit/verify');
  if (!response.ok)
    return { lines: [`The audit log cannot be read: ${JSON.stringify(response.body)}`], exitCode: 1 };
  const { records, broken } = verificationBody.parse(response.body);
  if (broken) return { lines: [`The audit log is broken: ${broken}.`], exitCode: 1 };
  return {
    lines: [
      `The audit log is whole: ${records} ${records === 1 ? 'record' : 'records'}, each following the one before.`,
    ],
    exitCode: 0,
  };
}
