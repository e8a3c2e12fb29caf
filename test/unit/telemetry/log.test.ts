import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { styleText } from 'node:util';
import { createLog, type LogLevel, type Terminal } from '../../../src/telemetry/log.ts';
import { version } from '../../../src/version.ts';

/** A log and the lines that it has written. */
function logTo(level: string, format: 'json' | 'text', { instance, terminal }: LogOptions = {}) {
  const lines: string[] = [];
  const output = { write: (line: string) => void lines.push(line), terminal };
  return { log: createLog({ level, format }, output, instance), lines };
}

interface LogOptions {
  readonly instance?: string;
  readonly terminal?: Terminal;
}

const source = { service: 'penstock', version, instance: 'an-id' };
const isoTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

describe('the JSON log', () => {
  test('has one JSON object per line: level by name, time as ISO 8601, source, message, and the given fields', () => {
    const { log, lines } = logTo('info', 'json', { instance: 'an-id' });
    log('warn', 'request failed', { status: 504, environment: 'sandbox', shared: false });

    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', /^\{.*\}\n$/);
    const { time, ...rest }: Record<string, unknown> = JSON.parse(lines[0] ?? '');
    assert.match(String(time), isoTime);
    assert.deepEqual(rest, {
      level: 'warn',
      ...source,
      message: 'request failed',
      status: 504,
      environment: 'sandbox',
      shared: false,
    });
  });

  test('contains objects and lists as JSON', () => {
    const { log, lines } = logTo('info', 'json');
    const fields = { details: { reason: 'go-live', steps: [{ ok: true }] }, errors: ['one', 'two'] };
    log('warn', 'audit', fields);
    const { details, errors } = JSON.parse(lines[0] ?? '');
    assert.deepEqual({ details, errors }, fields);
  });
});

describe('the text log', () => {
  test('begins each line with time, level and message, followed by source and fields', () => {
    const { log, lines } = logTo('info', 'text', { instance: 'an-id' });
    log('info', 'request', { operation: 'getPayment', status: 200 });

    const [, time = '', rest] = /^\[(.{24})\](.*)$/s.exec(lines[0] ?? '') ?? [];
    assert.match(time, isoTime);
    const fields = { ...source, operation: 'getPayment', status: 200 };
    assert.equal(rest, ` INFO: request ${JSON.stringify(fields)}\n`);
  });

  test('puts error codes and objects on the same line', () => {
    const { log, lines } = logTo('info', 'text');
    log('warn', 'request failed', { error: 'OUTCOME_UNKNOWN', details: { why: 'The bank said "no".' } });

    const fields = '{"error":"OUTCOME_UNKNOWN","details":{"why":"The bank said \\"no\\"."}}';
    assert.ok(lines[0]?.endsWith(` WARN: request failed ${fields}\n`), lines[0]);
  });

  test('is in colour on a terminal that has colours, and omits the fields that all lines share', () => {
    const { log, lines } = logTo('info', 'text', { instance: 'an-id', terminal: { hasColors: true } });
    log('info', 'serving', { publicUrl: 'https://gateway.example' });
    assert.ok(lines[0]?.includes(styleText('green', 'INFO', { validateStream: false })), lines[0]);
    assert.doesNotMatch(lines[0] ?? '', /an-id|version/);

    const plain = logTo('info', 'text', { instance: 'an-id', terminal: { hasColors: false } });
    plain.log('info', 'serving');
    assert.match(plain.lines[0] ?? '', /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: serving\n$/);
  });
});

for (const format of ['json', 'text'] as const) {
  describe(`the log as ${format}`, () => {
    test('omits fields that are undefined', () => {
      const { log, lines } = logTo('info', format);
      log('info', 'request', { environment: undefined });
      assert.doesNotMatch(lines[0] ?? '', /environment|undefined/);
    });

    test('escapes line breaks and control characters in values, so that a value cannot forge a line', () => {
      const { log, lines } = logTo('info', format);
      const why = 'one\r\n[12:00:00.000] INFO: request\u2028\u0000\u001b[2J';
      log('error', 'request failed', { why, stack: why, details: { why } });
      assert.equal(lines.length, 1);
      assert.match(lines[0] ?? '', /^[^\p{Cc}]*\n$/u);
    });

    test('writes the lines of its level and above', () => {
      const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];
      for (const [level, written] of [
        ['trace', 4],
        ['debug', 4],
        ['info', 3],
        ['warn', 2],
        ['error', 1],
        ['fatal', 0],
        ['silent', 0],
      ] as const) {
        const { log, lines } = logTo(level, format);
        for (const each of levels) log(each, 'said');
        assert.equal(lines.length, written, level);
      }
    });

    test('contains neither host name nor process id', () => {
      const { log, lines } = logTo('info', format);
      log('info', 'serving');
      assert.doesNotMatch(lines[0] ?? '', /pid|hostname/);
    });
  });
}
