import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLog, type LogLevel } from '../../../src/telemetry/log.ts';

/** A log and the lines that it has written. */
function logTo(level: string, format: 'json' | 'text') {
  const lines: string[] = [];
  return { log: createLog({ level, format }, { write: (line) => void lines.push(line) }), lines };
}

const isoTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

describe('the JSON log', () => {
  test('has one JSON object per line: level by name, time as ISO 8601, message, and the given fields', () => {
    const { log, lines } = logTo('info', 'json');
    log('warn', 'request failed', { status: 504, environment: 'sandbox', shared: false });

    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', /^\{.*\}\n$/);
    const { time, ...rest }: Record<string, unknown> = JSON.parse(lines[0] ?? '');
    assert.match(String(time), isoTime);
    assert.deepEqual(rest, {
      level: 'warn',
      message: 'request failed',
      status: 504,
      environment: 'sandbox',
      shared: false,
    });
  });
});

describe('the text log', () => {
  test('begins each line with time, level and message, followed by the fields in order', () => {
    const { log, lines } = logTo('info', 'text');
    log('info', 'request', { operation: 'getPayment', status: 200 });

    const [time = '', rest] = [lines[0]?.slice(0, 24), lines[0]?.slice(24)];
    assert.match(time, isoTime);
    assert.equal(rest, ' INFO  request operation=getPayment status=200\n');
  });

  test('quotes values that contain spaces or quotation marks', () => {
    const { log, lines } = logTo('info', 'text');
    log('warn', 'request failed', { why: 'The bank said "no".', proxyError: 'dns_error' });

    assert.ok(lines[0]?.endsWith(' why="The bank said \\"no\\"." proxyError=dns_error\n'));
  });
});

for (const format of ['json', 'text'] as const) {
  describe(`the log as ${format}`, () => {
    test('omits fields that are undefined', () => {
      const { log, lines } = logTo('info', format);
      log('info', 'request', { environment: undefined });
      assert.doesNotMatch(lines[0] ?? '', /environment|undefined/);
    });

    test('escapes line breaks in values, so that a value cannot forge a line', () => {
      const { log, lines } = logTo('info', format);
      log('error', 'request failed', { why: 'one\r\n2026-01-31T12:00:00.000Z INFO  request\u2028\u0000' });
      assert.equal(lines.length, 1);
      assert.match(lines[0] ?? '', /^[^\r\n]*\n$/);
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
