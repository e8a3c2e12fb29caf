/** Schemas of the contract guard's JSON responses: its report, and the comparison of two environments. */

import { z } from 'zod';

const listOf = <Item extends z.ZodType>(item: Item) => z.array(item).readonly();
const dateTime = z.string().meta({ format: 'date-time' });
const count = z.int();

const skipped = listOf(
  z.object({
    reason: z.string().describe('sampled-out (answers), shed because of load, failed, or not-counted.'),
    count,
  }),
);
const clientCounts = listOf(z.object({ client: z.string(), count }));
const path = z
  .string()
  .describe('The path in the schema: `*` is an unknown name, `#` an index. Never a value.');
const effect = z.string().describe('What the environment does with the message, such as refused or ignored.');
export const contractComparison = z.object({
  from: z.string(),
  to: z.string(),
  requests: count.describe('How many requests were checked against the contract of the other environment.'),
  since: dateTime,
  judgedSince: dateTime.nullable().describe('Requests before were not judged; null if none was.'),
  skipped,
  complete: z.boolean().describe('Whether all requests since then were judged.'),
  differences: listOf(
    z.object({
      operation: z.string(),
      path,
      rule: z.string(),
      level: z.string(),
      effect,
      count,
      clients: clientCounts,
      lastSeen: dateTime,
      xRequestId: z.string(),
      inBoth: z
        .boolean()
        .describe(
          'Whether the first environment refuses these requests as well: a switch does not ask about them. Of deviations that are not harmful: whether it has the same one.',
        ),
      mustAcknowledge: z.boolean().describe('Whether a switch must acknowledge it.'),
    }),
  ),
});

const checkedMessages = {
  checked: count,
  checkedSince: dateTime.nullable().describe('Nothing before was checked against this contract.'),
  skipped,
};

export const contractReport = z.object({
  from: dateTime.describe('The beginning of the first day of the report.'),
  environments: listOf(
    z.object({
      name: z.string(),
      standardVersion: z.string(),
      contract: z.string().describe('Hash of the schemas and rules that are in effect.'),
      requests: z.object({ mode: z.enum(['off', 'report', 'enforce']), ...checkedMessages }),
      responses: z.object({ mode: z.enum(['off', 'report']), sample: z.number(), ...checkedMessages }),
    }),
  ),
  deviations: listOf(
    z.object({
      environment: z.string(),
      operation: z.string(),
      direction: z.enum(['request', 'response']),
      path,
      rule: z.string(),
      level: z.string(),
      effect,
      contract: z.string(),
      current: z.boolean().describe('Whether it is a deviation from the contract in effect.'),
      count,
      firstSeen: dateTime,
      lastSeen: dateTime,
      xRequestId: z.string().describe('Of the last message.'),
      clients: clientCounts,
      changedAt: dateTime.nullable().describe('When the alert "the bank has changed" was raised for it.'),
    }),
  ),
  omitted: count.describe('Further deviations that are not listed.'),
});
