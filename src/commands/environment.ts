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

/** One line an environment, the active one marked. */
export async function showEnvironments(call: AdminClient): Promise<CommandOutput> {
  const answer = await call('GET', '/environments');
  if (!answer.ok) return refusedSwitch(answer.body);
  const { active, environments } = environmentsBody.parse(answer.body);
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

/** Switches, and prints the pre-flight's steps whatever came of it. */
export async function useEnvironment(
  call: AdminClient,
  { environment, reason, confirm, force }: SwitchOptions,
): Promise<CommandOutput> {
  // One by one: the order may have come with other options of the command line, and the gateway refuses those.
  const answer = await call('PUT', '/environments/active', { environment, reason, confirm, force });
  if (!answer.ok) return refusedSwitch(answer.body);
  return { lines: [...formatSteps(answer.body), `New payments go to ${environment} now.`], exitCode: 0 };
}

function refusedSwitch(body: unknown): CommandOutput {
  return { lines: [...formatSteps(body), switchBody.parse(body).error ?? 'refused'], exitCode: 1 };
}

function formatSteps(body: unknown): readonly string[] {
  const steps = switchBody.parse(body).preflight?.steps ?? [];
  return steps.map(({ step, ok, detail }) => `${ok ? 'ok    ' : 'FAILED'} ${step.padEnd(12)} ${detail}`);
}
