/** `penstock status`: can customers pay now, what is uncertain, and what to do next; on one screen. */

import { z } from 'zod';
import { type Severity, severities } from '../alerts/alert-table.ts';
import { type CanPay, canPay, currentSeverity } from '../alerts/can-pay.ts';
import type { AdminClient } from './admin-client.ts';
import { type AdminResponse, parseBody, successBody } from './admin-response.ts';
import { CommandError } from './command-error.ts';
import type { CommandOutput } from './command-output.ts';
import { exitCodes } from './exit-codes.ts';

const alertBody = z.object({
  id: z.string(),
  severity: z.enum(severities),
  environment: z.string().optional(),
  since: z.string(),
  text: z.string(),
  action: z.string(),
  guide: z.string(),
  overSince: z.string().optional(),
  instances: z.array(z.string()).optional(),
});
type AlertBody = z.output<typeof alertBody>;

const environmentsBody = z.object({
  active: z.string().nullable(),
  environments: z.array(z.object({ name: z.string(), baseUrl: z.string() })),
});

const instancesBody = z.array(
  z.object({
    status: z.string(),
    figures: z.object({ requestsPerSecond: z.number(), failedPerSecond: z.number() }),
  }),
);

const answers: Readonly<Record<CanPay, string>> = {
  yes: 'Customers can pay.',
  some: 'Some payments fail, or wait.',
  no: 'Customers cannot pay.',
};

/** The exit code is 0 without alerts that need attention, 1 with warnings, and 2 if one is critical. */
export async function showStatus(call: AdminClient, nowMs: number = Date.now()): Promise<CommandOutput> {
  const [alerts, environments, instances] = await Promise.all([
    call('GET', '/alerts').then((response) => parseBody(z.array(alertBody), alertsBody(response))),
    call('GET', '/environments').then((response) => parseBody(environmentsBody, successBody(response))),
    call('GET', '/instances').then((response) => parseBody(instancesBody, successBody(response))),
  ]);
  const { active } = environments;
  const answer = canPay(alerts, active);
  const lines = [
    answers[answer],
    `  ${placeOf(environments)}; ${trafficOf(instances)}.`,
    ...uncertainLines(alerts),
    ...nextLines(alerts, nowMs),
  ];
  return { lines, data: { canPay: answer, active, alerts }, exitCode: exitCodeOf(alerts) };
}

/** The exit code of a gateway without alerts must not read as that of a warning. */
function alertsBody(response: AdminResponse): unknown {
  if (response.status !== 404) return successBody(response);
  throw new CommandError(
    exitCodes.internal,
    'The gateway has no alerts: it is older than this command. Use the command penstock of its version.',
  );
}

function exitCodeOf(alerts: readonly AlertBody[]): number {
  const has = (wanted: Severity) => alerts.some((alert) => currentSeverity(alert) === wanted);
  if (has('critical')) return exitCodes.critical;
  return has('warning') ? exitCodes.refused : exitCodes.ok;
}

function placeOf({ active, environments }: z.output<typeof environmentsBody>): string {
  if (active === null) return 'The active environment is not known yet';
  const baseUrl = environments.find(({ name }) => name === active)?.baseUrl;
  return `New payments go to ${active}${baseUrl === undefined ? '' : ` (${baseUrl})`}`;
}

function trafficOf(instances: z.output<typeof instancesBody>): string {
  const running = instances.filter(({ status }) => status === 'up');
  const sum = (name: 'requestsPerSecond' | 'failedPerSecond') =>
    running.reduce((total, { figures }) => total + figures[name], 0).toFixed(1);
  const count = `${running.length} ${running.length === 1 ? 'instance' : 'instances'}`;
  return `${count}, ${sum('requestsPerSecond')} requests/s, ${sum('failedPerSecond')}/s failed at the bank`;
}

const uncertain = new Set(['in-doubt', 'authorisation-in-doubt', 'database-lost-writes']);

function uncertainLines(alerts: readonly AlertBody[]): readonly string[] {
  const texts = alerts.filter(({ id }) => uncertain.has(id)).map(({ text }) => text);
  if (alerts.some(({ id }) => id === 'database-unavailable'))
    texts.push('not known: the database is unavailable');
  if (texts.length === 0) texts.push('nothing');
  return ['', 'Uncertain:', ...texts.map((text) => `  ${text}`)];
}

function nextLines(alerts: readonly AlertBody[], nowMs: number): readonly string[] {
  const serious = alerts.filter(({ severity }) => severity !== 'info');
  const notes = alerts.filter(({ severity }) => severity === 'info');
  return [
    '',
    'Do next:',
    ...(serious.length === 0 ? ['  nothing'] : serious.flatMap((alert) => alertLines(alert, nowMs))),
    ...(notes.length === 0 ? [] : ['', 'Good to know:', ...notes.map(({ text }) => `  ${text}`)]),
  ];
}

function alertLines(alert: AlertBody, nowMs: number): readonly string[] {
  const { id, environment, since, text, action, guide } = alert;
  const name = environment === undefined ? id : `${id} (${environment})`;
  const age = ageOf(nowMs - Date.parse(since));
  return [
    `  ${currentSeverity(alert).toUpperCase()}  ${name}, since ${since.slice(0, 19)}Z (${age})`,
    `    ${text}`,
    `    ${action}`,
    `    ${guide}`,
  ];
}

/** `45 s`, `12 min`, `3 h`, `2 d` */
function ageOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`;
}
