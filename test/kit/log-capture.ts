/** A log that stores its lines. */

import type { Log, LogFields, LogLevel } from '../../src/telemetry/log.ts';

export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields;
}

export function captureLog(): { readonly log: Log; readonly lines: readonly LogLine[] } {
  const lines: LogLine[] = [];
  return { log: (level, message, fields = {}) => void lines.push({ level, message, fields }), lines };
}
