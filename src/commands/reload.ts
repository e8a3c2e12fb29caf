/** `penstock reload`: makes a running gateway, or all instances, load the configuration again, and prints what changed. */

import { z } from 'zod';
import { describeChange } from '../config/config-changes.ts';
import type { AdminClient } from './admin-client.ts';
import { parseBody, successBody } from './admin-response.ts';
import type { Options } from './command.ts';
import { CommandError } from './command-error.ts';
import { type CommandOutput, success } from './command-output.ts';
import { exitCodes } from './exit-codes.ts';

const changes = z.array(
  z.object({ setting: z.string(), from: z.string().nullable(), to: z.string().nullable() }),
);
const reportBody = z.object({ changes, restartRequired: changes });
const answersBody = z.object({
  instances: z.array(
    z.object({
      name: z.string(),
      outcome: z.enum(['applied', 'refused', 'no answer']),
      errors: z.array(z.string()),
      restartRequired: z.array(z.string()),
      configurationHash: z.string(),
    }),
  ),
});
const refusalBody = z.object({ error: z.string(), errors: z.array(z.string()) });

/**
 * @throws CommandError with all errors if the new configuration cannot be used; the previous one stays in effect. With `--all`, if an
 *   instance has refused it or did not answer
 */
export async function reload(
  call: AdminClient,
  { reason, all }: Pick<Options, 'reason' | 'all'>,
): Promise<CommandOutput> {
  const body = { ...(reason !== undefined && { reason }), ...(all && { all }) };
  const response = await call('POST', '/config/reload', body);
  if (all) return describeAnswers(parseBody(answersBody, successBody(response)));
  const refusal = response.ok ? undefined : refusalBody.safeParse(response.body).data;
  if (refusal) {
    const { error, errors } = refusal;
    throw new CommandError(exitCodes.config, [error, ...errors].join('\n'), { data: { errors } });
  }
  const report = parseBody(reportBody, successBody(response));
  const lines = [
    report.changes.length === 0
      ? 'Configuration reloaded: no setting has changed.'
      : 'Configuration reloaded:',
    ...report.changes.map((change) => `  ${describeChange(change)}`),
    ...(report.restartRequired.length === 0 ? [] : ['A restart is required for:']),
    ...report.restartRequired.map((change) => `  ${describeChange(change)}`),
  ];
  return success(lines, report);
}

function describeAnswers(body: z.infer<typeof answersBody>): CommandOutput {
  const lines = body.instances.flatMap(({ name, outcome, errors, restartRequired, configurationHash }) => [
    `${name}: ${outcome}, configuration ${configurationHash.slice(0, 12)}${restartRequired.length > 0 ? ', a restart is required for:' : ''}`,
    ...[...errors, ...restartRequired].map((line) => `  ${line}`),
  ]);
  const isDone = body.instances.every(({ outcome }) => outcome === 'applied');
  if (isDone) return success(lines, body);
  throw new CommandError(exitCodes.config, 'Not every instance uses the new configuration.', {
    lines,
    data: body,
  });
}
