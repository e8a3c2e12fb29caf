/** `penstock environment`: shows the environments. `penstock environment use`: switches the active one. */

import { z } from 'zod';
import type { AdminClient } from './admin-client.ts';
import { type AdminResponse, parseBody, successBody } from './admin-response.ts';
import { type CommandOutput, success } from './command-output.ts';
import { acknowledgeLines, comparisonBody, comparisonLines } from './contract.ts';

const environmentsBody = z.object({
  active: z.string().nullable(),
  version: z.number().nullable(),
  environments: z.array(z.object({ name: z.string(), baseUrl: z.string(), standardVersion: z.string() })),
});

const switchBody = z.object({
  preflight: z
    .object({
      steps: z.array(
        z.object({ step: z.string(), ok: z.boolean(), detail: z.string(), remark: z.string().optional() }),
      ),
    })
    .optional(),
  contract: comparisonBody.nullish(),
});

/** One line per environment; an asterisk marks the active one. */
export async function showEnvironments(call: AdminClient): Promise<CommandOutput> {
  const data = successBody(await call('GET', '/environments'));
  const { active, environments } = parseBody(environmentsBody, data);
  const width = Math.max(12, ...environments.map(({ name }) => name.length));
  const lines = environments.map(({ name, baseUrl, standardVersion }) => {
    return `${name === active ? '*' : ' '} ${name.padEnd(width)} ${standardVersion.padEnd(8)} ${baseUrl}`;
  });
  return success(lines, data);
}

interface SwitchOptions {
  readonly environment: string;
  readonly reason: string;
  readonly confirm?: string | undefined;
  readonly force?: boolean | undefined;
  readonly acknowledgeDifferences?: boolean | undefined;
}

/** Switches the active environment. Prints the steps of the pre-flight test in any case. */
export async function useEnvironment(
  call: AdminClient,
  { environment, reason, confirm, force = false, acknowledgeDifferences = false }: SwitchOptions,
): Promise<CommandOutput> {
  const response = await call('PUT', '/environments/active', {
    environment,
    reason,
    confirm,
    force,
    // A gateway of an earlier release does not know it.
    ...(acknowledgeDifferences && { acknowledgeDifferences }),
  });
  const steps = [...formatSteps(response.body), ...formatComparison(response)];
  const data = successBody(response, steps);
  return success([...steps, `New payments go to ${environment} now.`], data);
}

function formatComparison({ ok, body }: AdminResponse): readonly string[] {
  const { contract } = parseBody(switchBody, body);
  if (!contract) return [];
  return [...comparisonLines(contract), ...(ok ? [] : acknowledgeLines(contract))];
}

function formatSteps(body: unknown): readonly string[] {
  const steps = parseBody(switchBody, body).preflight?.steps ?? [];
  return steps.flatMap(({ step, ok, detail, remark }) => [
    `${ok ? 'ok    ' : 'FAILED'} ${step.padEnd(12)} ${detail}`,
    ...(remark === undefined ? [] : [`${''.padEnd(19)} ${remark}`]),
  ]);
}
