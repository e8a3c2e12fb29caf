/** The log: one line per event, as JSON or as text, and what of an error may be logged. Only this file knows pino. */

import { pino } from 'pino';
import { prettyFactory } from 'pino-pretty';
import { version } from '../version.ts';

/** Fields of one line. Never bodies, tokens, addresses, or any part of a path or a header value. */
export interface LogFields {
  readonly [name: string]: LogValue | undefined;
  // Every line has these already, and JSON with two members of one name is ambiguous.
  readonly service?: never;
  readonly version?: never;
  readonly instance?: never;
}

type LogValue = string | number | boolean | readonly string[] | Readonly<Record<string, unknown>>;

/** The levels that the gateway itself uses; the configuration also knows `trace`, `fatal` and `silent`. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export type Log = (level: LogLevel, message: string, fields?: LogFields) => void;

interface LogSettings {
  readonly level: string;
  readonly format: 'json' | 'text';
}

/** Where the lines go. */
export interface LogOutput {
  /** @param line complete */
  write(line: string): void;
  /** Set if a person reads the lines on a terminal. */
  readonly terminal?: Terminal | undefined;
}

export interface Terminal {
  readonly hasColors: boolean;
}

/**
 * Every line names service, version and instance, so that the lines of several can be told apart.
 *
 * @param instance the name of this instance (instance-name.ts); without it, lines do not name their source
 */
export function createLog({ level, format }: LogSettings, output: LogOutput, instance?: string): Log {
  const logger = pino(
    {
      level,
      base: instance === undefined ? null : { service: 'penstock', version, instance },
      messageKey: 'message',
      timestamp: createTimestamp(),
      formatters: { level: (label) => ({ level: label }) },
    },
    format === 'json' ? output : textOutput(output),
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

/**
 * Lines for people: `[2026-01-31T12:00:00.000Z] INFO: request {"operation":"getPayment","status":200}`. Line breaks and control
 * characters in values are escaped, so that a value cannot forge a line. On a terminal, a line has the local time, and not
 * the members that all lines share.
 */
function textOutput({ write, terminal }: LogOutput): LogOutput {
  const format = prettyFactory({
    colorize: terminal?.hasColors ?? false,
    messageKey: 'message',
    singleLine: true,
    errorLikeObjectKeys: [], // `error` is a code here, and stays on the line
    translateTime: terminal ? 'SYS:HH:MM:ss.l' : false,
    ...(terminal && { ignore: 'service,version,instance' }),
  });
  return { write: (line) => write(format(line)) };
}
