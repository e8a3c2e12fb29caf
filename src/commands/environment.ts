/** `penstock environment`: shows the environments. `penstock environment use NAME --reason ..`: switches. */

import { z } from 'zod';
import type { CallAdmin } from './admin-client.ts';
import type { Printed } from './printed.ts';

const environmentsShape = z.object({
  active: z.string().nullable(),
  version: z.number().nullable(),
  environments: z.array(z.object({ name: z.string(), baseUrl: z.string(), standardVersion: z.string() })),
});

const reportShape = z.object({
  error: z.string().optional(),
  preflight: z
    .object({ steps: z.array(z.object({ step: z.string(), ok: z.boolean(), detail: z.string() })) })
    .optional(),
});

/** One line an environment, the active one marked. */
export async function showEnvironments(call: CallAdmin): Promise<Printed> {
  const answer = await call('GET', '/environments');
  if (!answer.ok) return refused(answer.body);
  const { active, environments } = environmentsShape.parse(answer.body);
  const lines = environments.map(({ name, baseUrl, standardVersion }) => {
    return `${name === active ? '*' : ' '} ${name.padEnd(12)} ${standardVersion.padEnd(8)} ${baseUrl}`;
  });
  return { lines, exitCode: 0 };
}

interface Order {
  readonly environment: string;
  readonly reason: string;
  readonly confirm?: string;
  readonly force: boolean;
}

/** Switches, and prints the pre-flight's steps whatever came of it. */
export async function useEnvironment(
  call: CallAdmin,
  { environment, reason, confirm, force }: Order,
): Promise<Printed> {
  // One by one: the order may have come with other options of the command line, and the gateway refuses those.
  const answer = await call('PUT', '/environments/active', { environment, reason, confirm, force });
  if (!answer.ok) return refused(answer.body);
  return { lines: [...stepsOf(answer.body), `New payments go to ${environment} now.`], exitCode: 0 };
}

function refused(body: unknown): Printed {
  return { lines: [...stepsOf(body), reportShape.parse(body).error ?? 'refused'], exitCode: 1 };
}

function stepsOf(body: unknown): readonly string[] {
  const steps = reportShape.parse(body).preflight?.steps ?? [];
  return steps.map(({ step, ok, detail }) => `${ok ? 'ok    ' : 'FAILED'} ${step.padEnd(12)} ${detail}`);
}
