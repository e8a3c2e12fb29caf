/** A log that remembers what was said. */

import type { Log, LogFields, LogLevel } from '../../src/telemetry/log.ts';

export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields;
}

/** A log with no lines yet. */
export function captureLog(): { readonly log: Log; readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = [];
  return { log: (level, message, fields = {}) => void lines.push({ level, message, fields }), lines };
}
