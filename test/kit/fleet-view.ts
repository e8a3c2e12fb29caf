/** What the admin API of an instance shows of the whole fleet. */

import { callAdminApi } from './admin-api.ts';
import { adminToken } from './gateway.ts';
import { within } from './within.ts';

type AdminListener = Parameters<typeof callAdminApi>[0];

/** An item of `GET /api/instances`; the members that tests look at. */
export interface ShownInstance {
  readonly name: string;
  readonly status: string;
  readonly ready: boolean;
  readonly reasons: readonly string[];
  readonly lastSeen: string;
  readonly clockDifferenceMs: number;
  readonly configurationHash: string;
  readonly figures: Readonly<Record<string, number | null>>;
  readonly circuits: readonly ShownCircuit[];
}

interface ShownCircuit {
  readonly environment: string;
  readonly lane: string;
  readonly state: string;
  readonly cause: { readonly why: string; readonly count: number } | null;
}

/** An item of `GET /api/timeline`. */
export interface ShownEntry {
  readonly at: string;
  readonly kind: string;
  readonly instance: string;
  readonly who: string | null;
  readonly environment: string | null;
  readonly text: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** The first event of `GET /api/events`. */
export interface ShownSnapshot {
  readonly instances: readonly ShownInstance[];
  readonly readiness: { readonly reasons: readonly string[] };
  readonly fleet: { readonly isComplete: boolean; readonly why: string | null };
  readonly seconds: readonly { readonly at: number; readonly requests: number }[];
}

export async function readInstances(gateway: AdminListener): Promise<readonly ShownInstance[]> {
  return JSON.parse((await callAdminApi(gateway, 'GET', '/api/instances')).text);
}

/** The status of each instance, by its name. */
export const readStatuses = async (gateway: AdminListener): Promise<Readonly<Record<string, string>>> =>
  Object.fromEntries((await readInstances(gateway)).map(({ name, status }) => [name, status]));

export async function readTimeline(gateway: AdminListener, query = ''): Promise<readonly ShownEntry[]> {
  return JSON.parse((await callAdminApi(gateway, 'GET', `/api/timeline${query}`)).text);
}

export async function readSnapshot({ adminUrl }: AdminListener): Promise<ShownSnapshot> {
  const headers = { Authorization: `Bearer ${adminToken}` };
  const stop = new AbortController();
  const response = await fetch(`${adminUrl}/api/events`, { headers, signal: stop.signal });
  const chunks = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (!text.includes('\n\n')) {
    const chunk = await within(
      20_000,
      'the first event',
      chunks?.read() ?? Promise.reject(new Error('no body')),
    );
    if (chunk.done) throw new Error(`the stream ended: ${text}`);
    text += chunk.value;
  }
  stop.abort();
  return JSON.parse(/^event: snapshot\ndata: (.*)\n\n/.exec(text)?.[1] ?? '');
}
