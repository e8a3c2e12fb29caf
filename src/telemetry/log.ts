/** The log: one line an event, as JSON or as text. Only this file knows pino. */

import { type DestinationStream, pino } from 'pino';

/** Named values of one line; never bodies, tokens, addresses, or anything that came in a path or a header's value. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** `trace` to `silent` as in the configuration; what the gateway itself writes is one of these. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Where the parts of the gateway say what happened. */
export type Log = (level: LogLevel, message: string, fields?: LogFields) => void;

interface LogSettings {
  readonly level: string;
  readonly format: 'json' | 'text';
}

/** @param stream where the lines go */
export function createLog({ level, format }: LogSettings, stream: DestinationStream): Log {
  const logger = pino(
    {
      level,
      base: null,
      messageKey: 'message',
      timestamp: createTimestamp(),
      formatters: { level: (label) => ({ level: label }) },
    },
    format === 'json' ? stream : { write: (line) => stream.write(formatText(line)) },
  );
  return (lineLevel, message, fields = {}) => logger[lineLevel](fields, message);
}

/** As pino wants it. Many lines are written in one millisecond, and a date costs as much as the rest of a short line. */
function createTimestamp(): () => string {
  let atMs = 0;
  let text = '';
  return () => {
    const nowMs = Date.now();
    if (nowMs !== atMs) text = `,"time":"${new Date(nowMs).toISOString()}"`;
    atMs = nowMs;
    return text;
  };
}

/** `2026-01-31T12:00:00.000Z INFO  request operation=getPayment status=200` */
function formatText(line: string): string {
  const { level, time, message, ...fields }: Record<string, unknown> = JSON.parse(line);
  const rest = Object.entries(fields).map(
    ([name, value]) =>
      ` ${name}=${typeof value === 'string' && !/[\s"]/.test(value) ? value : JSON.stringify(value)}`,
  );
  return `${time} ${String(level).toUpperCase().padEnd(5)} ${message}${rest.join('')}\n`;
}

// MERGED HEADER (rewrite or remove):
/* Where something was thrown, for the log. */

/** What was thrown, and where; never its message, which may quote what a request or an answer held, as JSON.parse does. */
export function safeStack(thrown: unknown): string {
  if (!(thrown instanceof Error)) return `thrown: ${typeof thrown}`;
  const { name, message, stack = '' } = thrown;
  const code = 'code' in thrown ? ` ${thrown.code}` : '';
  const frames = stack.replace(message, '').match(/^ {4}at .+$/gm) ?? [];
  return [name + code, ...frames].join('\n');
}
