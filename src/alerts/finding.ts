/** What one evaluation finds, and the alert that is made of it. */

import type { AlertId, Severity } from './alert-table.ts';

export interface Finding {
  readonly id: AlertId;
  readonly severity: Severity;
  readonly environment?: string | undefined;
  /** Tells findings with the same id and environment apart, such as the name of an endpoint. Stays while numbers change. */
  readonly subject?: string | undefined;
  /** Findings of one group are one alert, whose id may change: by default, each id is a group. */
  readonly group?: string | undefined;
  /** What is so: a sentence, or several. */
  readonly text: string;
  /** Since when, if that is known: milliseconds since 1970. By default, since it was found first. */
  readonly sinceMs?: number | undefined;
}

/** When something is found, and which environments matter then. */
export interface Moment {
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  /** The active environment, if it is known. */
  readonly active: string | undefined;
  readonly isProduction: (environment: string) => boolean;
}

/** Whether customers pay in an environment. */
export const isImportant = ({ active, isProduction }: Moment, environment: string): boolean =>
  environment === active || isProduction(environment);

/** As in the admin API. */
export interface Alert {
  readonly id: string;
  readonly severity: Severity;
  readonly environment?: string;
  /** ISO 8601, UTC. */
  readonly since: string;
  readonly text: string;
  readonly action: string;
  readonly guide: string;
  /** When its condition has ended, while it is kept for a moment. */
  readonly overSince?: string;
  /** The instances that find it, if others do not. */
  readonly instances?: readonly string[];
}

/** Equal for the same finding in different evaluations, and on different instances. */
export const keyOf = ({ id, group = id, environment = '', subject = '' }: Finding): string =>
  JSON.stringify([group, environment, subject]);

/** `2 payments`, `1 payment` */
export const countOf = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count.toLocaleString('en-GB')} ${count === 1 ? noun : plural}`;

export const percentOf = (share: number): string => `${Math.floor(share * 100)} %`;

/** `10:22:05 UTC` */
export const clockTime = (ms: number): string => `${new Date(ms).toISOString().slice(11, 19)} UTC`;

/** Texts as a list: `a, b and c`. */
export const listText = (texts: readonly string[]): string => new Intl.ListFormat('en-GB').format(texts);
