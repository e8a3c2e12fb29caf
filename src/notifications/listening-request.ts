/** What a status read says about waiting for a change: `Prefer: wait` (RFC 7240) and `If-None-Match` with tags of the gateway. */

import { parseDeltaSeconds } from '../pis/delta-seconds.ts';
import { type HeaderFields, headerValues, withoutFields } from '../pis/headers.ts';
import { statusTagsIn } from '../request/status-tag.ts';
import type { Statuses } from '../request/statuses.ts';

/** A read that the gateway itself answers when the status changes, or compares with tags. */
export interface ListeningRead {
  /** The tags of the statuses that the TPP has; `undefined` if there is no condition. */
  readonly tags: readonly string[] | undefined;
  /** 0 if the read does not wait. */
  readonly waitMs: number;
  /** The fields without those that the gateway has answered. */
  readonly headers: HeaderFields;
}

/**
 * @param maxWaitMs `notifications.maxWait`
 * @returns `undefined` if the read is an ordinary one, which passes unchanged
 */
export function listeningReadIn(
  headers: HeaderFields,
  maxWaitMs: number,
  { cacheUseOf }: Pick<Statuses, 'cacheUseOf'>,
): ListeningRead | undefined {
  const tags = statusTagsIn(headers);
  const unconditional = tags ? withoutFields(headers, conditionFields) : headers;
  const { isBypassed, mayWait } = cacheUseOf(unconditional);
  if (isBypassed) return undefined;
  const waitMs = mayWait ? Math.min(maxWaitMs, waitMsIn(headers)) : 0;
  if (!tags && waitMs === 0) return undefined;
  return { tags, waitMs, headers: waitMs > 0 ? withoutWait(unconditional) : unconditional };
}

const conditionFields: ReadonlySet<string> = new Set(['if-none-match']);

/** The seconds of the first `wait` preference, in milliseconds; 0 if there is none, or its value is no number of seconds. */
export function waitMsIn(headers: HeaderFields): number {
  const wait = preferencesIn(headers).find(({ name }) => name === 'wait');
  return parseDeltaSeconds(wait?.value) ?? 0;
}

interface Preference {
  /** In lower case. */
  readonly name: string;
  /** Without quotes; empty if it has none. */
  readonly value: string;
  /** As it was sent, with its parameters. */
  readonly text: string;
}

/** The preferences of all lines. A comma or semicolon within quotes is part of a value (RFC 7240 section 2). */
function preferencesIn(headers: HeaderFields): readonly Preference[] {
  const members = headerValues(headers, 'prefer').flatMap(
    (value) => value.match(/(?:[^",]|"(?:[^"\\]|\\.)*"?)+/g) ?? [],
  );
  return members
    .map((member) => member.trim())
    .filter((text) => text !== '')
    .map((text) => {
      const [, name = '', value = ''] = /^([^=;\s]+)(?:\s*=\s*("(?:[^"\\]|\\.)*"|[^;\s]*))?/.exec(text) ?? [];
      return { name: name.toLowerCase(), value: value.replaceAll('"', ''), text };
    });
}

const preferenceFields: ReadonlySet<string> = new Set(['prefer']);

/** The fields with all preferences but `wait`, which the gateway has honoured. */
function withoutWait(headers: HeaderFields): HeaderFields {
  const others = preferencesIn(headers).filter(({ name }) => name !== 'wait');
  const rest = withoutFields(headers, preferenceFields);
  return others.length === 0 ? rest : [...rest, ['Prefer', others.map(({ text }) => text).join(', ')]];
}
