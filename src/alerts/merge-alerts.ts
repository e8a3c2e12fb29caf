/** The alerts of all instances together: what this one has raised, and what the others have reported. */

import type { ReportedAlert } from '../telemetry/fleet-reports.ts';
import { alertRow, guideUrl, isAlertId, severities } from './alert-table.ts';
import { type Alert, listText } from './finding.ts';

/** The other instances may be of another version. */
export interface AlertsOfInstance {
  readonly name: string;
  readonly alerts: readonly ReportedAlert[];
}

/**
 * Alerts with the same key become one. If it concerns single instances, and not all of them report it, its text names those that do. It is
 * over when it is over on all of them.
 *
 * @returns the most severe first
 */
export function mergeAlerts(own: AlertsOfInstance, others: readonly AlertsOfInstance[]): readonly Alert[] {
  const all = [own, ...others];
  const reports = all.flatMap(({ name, alerts }) => alerts.map((alert) => ({ name, alert })));
  return [...Map.groupBy(reports, ({ alert }) => alert.key).values()]
    .flatMap((group) => mergeGroup(group, all.length))
    .toSorted((one, other) => bySeverity(one, other) || one.since.localeCompare(other.since));
}

interface Report {
  readonly name: string;
  readonly alert: ReportedAlert;
}

function mergeGroup(group: readonly Report[], instances: number): readonly Alert[] {
  const active = group.filter(({ alert }) => alert.overAtMs === undefined);
  const told = (active.length > 0 ? active : group).toSorted((one, other) =>
    bySeverity(one.alert, other.alert),
  );
  const [first] = told;
  if (!first || !isAlertId(first.alert.id)) return [];
  const { id, severity, environment, text } = first.alert;
  const row = alertRow(id);
  const names = row.isOfInstance && told.length < instances ? told.map(({ name }) => name) : undefined;
  const overAtMs = active.length > 0 ? undefined : Math.max(...told.map(({ alert }) => alert.overAtMs ?? 0));
  return [
    {
      id,
      severity,
      ...(environment !== undefined && { environment }),
      since: isoTime(Math.min(...group.map(({ alert }) => alert.sinceMs))),
      text: names ? `${text} Only on ${listText(names)}.` : text,
      action: row.action,
      guide: guideUrl(row.guide),
      ...(overAtMs !== undefined && { overSince: isoTime(overAtMs) }),
      ...(names && { instances: names }),
    },
  ];
}

const isoTime = (ms: number) => new Date(ms).toISOString();

const order: readonly string[] = severities;

/** The most severe first. */
export const bySeverity = (one: Pick<ReportedAlert, 'severity'>, other: Pick<ReportedAlert, 'severity'>) =>
  order.indexOf(one.severity) - order.indexOf(other.severity);
