/** The log: one line per event, as JSON or as text, and what of an error may be logged. Only this file knows pino. */

import { type DestinationStream, pino } from 'pino';

/** Fields of one line. Never bodies, tokens, addresses, or any part of a path or a header value. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** The levels that the gateway itself uses; the configuration also knows `trace`, `fatal` and `silent`. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export type Log = (level: LogLevel, message: string, fields?: LogFields) => void;

interface LogSettings {
  readonly level: string;
  readonly format: 'json' | 'text';
}

/** @param stream receives complete lines */
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

/**
 * Describes an error without its message, which may quote a request or a response, as that of JSON.parse does.
 *
 * @returns name, Node's error code if there is one, and the stack frames
 */
export function safeStack(thrown: unknown): string {
  if (!(thrown instanceof Error)) return `thrown: ${typeof thrown}`;
  const { name, message, stack = '' } = thrown;
  const code = 'code' in thrown ? ` ${thrown.code}` : '';
  const frames = stack.replace(message, '').match(/^ {4}at .+$/gm) ?? [];
  return [name + code, ...frames].join('\n');
}

/** In pino's format. Formats each millisecond once: a date costs as much as the rest of a short line. */
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
