/** `penstock environment`: shows the environments. `penstock environment use NAME --reason ..`: switches. */

import { z } from 'zod';
import type { AdminClient } from './admin-client.ts';
import type { CommandOutput } from './command-output.ts';

const environmentsBody = z.object({
  active: z.string().nullable(),
  version: z.number().nullable(),
  environments: z.array(z.object({ name: z.string(), baseUrl: z.string(), standardVersion: z.string() })),
});

const switchBody = z.object({
  error: z.string().optional(),
  preflight: z
    .object({ steps: z.array(z.object({ step: z.string(), ok: z.boolean(), detail: z.string() })) })
    .optional(),
});

/** One line per environment; an asterisk marks the active one. */
export async function showEnvironments(call: AdminClient): Promise<CommandOutput> {
  const response = await call('GET', '/environments');
  if (!response.ok) return refusedSwitch(response.body);
  const { active, environments } = environmentsBody.parse(response.body);
  const lines = environments.map(({ name, baseUrl, standardVersion }) => {
    return `${name === active ? '*' : ' '} ${name.padEnd(12)} ${standardVersion.padEnd(8)} ${baseUrl}`;
  });
  return { lines, exitCode: 0 };
}

interface SwitchOptions {
  readonly environment: string;
  readonly reason: string;
  readonly confirm?: string;
  readonly force: boolean;
}

/** Switches the active environment. Prints the steps of the pre-flight in any case. */
export async function useEnvironment(
  call: AdminClient,
  { environment, reason, confirm, force }: SwitchOptions,
): Promise<CommandOutput> {
  // Named one by one: the caller passes all options of the command line, and the gateway refuses unknown ones.
  const response = await call('PUT', '/environments/active', { environment, reason, confirm, force });
  if (!response.ok) return refusedSwitch(response.body);
  return { lines: [...formatSteps(response.body), `New payments go to ${environment} now.`], exitCode: 0 };
}

function refusedSwitch(body: unknown): CommandOutput {
  return { lines: [...formatSteps(body), switchBody.parse(body).error ?? 'refused'], exitCode: 1 };
}

function formatSteps(body: unknown): readonly string[] {
  const steps = switchBody.parse(body).preflight?.steps ?? [];
  return steps.map(({ step, ok, detail }) => `${ok ? 'ok    ' : 'FAILED'} ${step.padEnd(12)} ${detail}`);
}
