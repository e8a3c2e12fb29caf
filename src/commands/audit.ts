/** `penstock audit list` and `penstock audit verify`: show the audit log, and verify its hash chain. */

import { z } from 'zod';
import type { AdminClient } from './admin-client.ts';
import { parseBody, successBody } from './admin-response.ts';
import { type CommandOutput, success } from './command-output.ts';
import { exitCodes } from './exit-codes.ts';

const recordsBody = z.array(
  z.object({
    number: z.number(),
    at: z.string(),
    who: z.string(),
    action: z.string(),
    outcome: z.string(),
    details: z.record(z.string(), z.unknown()),
  }),
);
type RecordBody = z.output<typeof recordsBody>[number];

/** One line for each of the newest records, newest first. Details that are objects are only in the data. */
export async function listAudit(call: AdminClient): Promise<CommandOutput> {
  const body = successBody(await call('GET', '/audit'));
  const records = parseBody(recordsBody, body);
  return success(records.length === 0 ? ['The audit log is empty.'] : records.map(formatRecord), body);
}

/** `12  2026-01-31T12:00:00.000Z  olga  switch environment: switched  environment="production" reason="go-live"` */
function formatRecord({ number, at, who, action, outcome, details }: RecordBody): string {
  const facts = Object.entries(details)
    .filter(([, value]) => value !== null && typeof value !== 'object')
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return [number, at, who, `${action}: ${outcome}`, facts.join(' ')].join('  ').trimEnd();
}

const verificationBody = z.object({ records: z.number(), broken: z.string().optional() });

/** The exit code is 1 if a record was altered, removed or inserted. */
export async function verifyAudit(call: AdminClient): Promise<CommandOutput> {
  const data = successBody(await call('GET', '/audit/verify'));
  const { records, broken } = parseBody(verificationBody, data);
  if (broken !== undefined) {
    const lines = [`The hash chain of the audit log is broken: ${broken}.`];
    return { lines, data, exitCode: exitCodes.refused };
  }
  const count = `${records} ${records === 1 ? 'record' : 'records'}`;
  return success([`The hash chain of the audit log is intact (${count}).`], data);
}
