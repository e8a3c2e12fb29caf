import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorResponse } from '../../../src/http/write-error.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import type { PisRequest, PisResponse } from '../../../src/request/messages.ts';
import { createAccessLog } from '../../../src/telemetry/access-log.ts';
import type { Log, LogFields } from '../../../src/telemetry/log.ts';
import { observe, observeRefusal } from '../../../src/telemetry/observe.ts';
import { combineObservers } from '../../../src/telemetry/request-record.ts';

const requestId = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';
const iban = 'DE89370400440532013000';

const read: PisRequest = {
  operation: {
    name: 'getPayment',
    method: 'GET',
    lane: 'read',
    createsPayment: false,
    readsStatus: false,
    changesStatus: false,
    paymentService: 'payments',
    paymentProduct: 'sepa-credit-transfers',
    paymentId: iban,
    path: `/berlingroup/v1/payments/sepa-credit-transfers/${iban}`,
  },
  client: { name: 'shop', tenant: 'merchants', environments: ['sandbox'] },
  requestId,
  headers: [['Authorization', `Bearer ${iban}`]],
  body: Buffer.from(iban),
  arrivedAtMs: performance.now(),
  deadlineAtMs: performance.now() + 1_000,
};

const answer: PisResponse = {
  status: 200,
  headers: [['Set-Cookie', iban]],
  body: Buffer.from(iban),
  servedFrom: 'bank',
  environment: 'sandbox',
  upstreamMs: 12.345,
};

const watching = (log: Log) => combineObservers([createAccessLog(log)]);

interface Line extends LogFields {
  readonly level: string;
  readonly message: string;
}

/** What of the fields stands in a line. */
const standing = (fields: LogFields): LogFields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** A log that keeps its lines, and the one line expected in it. */
function keeping() {
  const lines: Line[] = [];
  const log: Log = (level, message, fields = {}) => void lines.push({ ...standing(fields), level, message });
  const line = (): Line => {
    const [first, ...more] = lines;
    assert.ok(first);
    assert.equal(more.length, 0, 'one line a request');
    return first;
  };
  return { log, line };
}

/** What `observe` logs and rethrows when the line throws this. */
async function observed(thrown: unknown) {
  const { log, line } = keeping();
  const error: unknown = await observe(watching(log))(read, () => Promise.reject(thrown)).catch(
    (rethrown) => rethrown,
  );
  assert.ok(error instanceof GatewayError);
  return { error, line: line() };
}

describe('observe', () => {
  test('says of an answer who asked for what, where it went, and how long it took', async () => {
    const { log, line } = keeping();
    assert.equal(await observe(watching(log))(read, async () => answer), answer);

    const { durationMs, ...rest } = line();
    assert.ok(Number(durationMs) >= 0);
    assert.deepEqual(rest, {
      level: 'info',
      message: 'request',
      requestId,
      operation: 'getPayment',
      client: 'shop',
      tenant: 'merchants',
      environment: 'sandbox',
      status: 200,
      servedFrom: 'bank',
      upstreamMs: 12.3,
    });
  });

  test('says of a failure why, and passes the error on as it is', async () => {
    const failure = new GatewayError('OUTCOME_UNKNOWN', 'The bank did not answer in time.', {
      environment: 'sandbox',
      cause: new Error(iban),
    });
    const { error, line } = await observed(failure);

    assert.equal(error, failure);
    const { durationMs, ...rest } = line;
    assert.ok(Number(durationMs) >= 0);
    assert.deepEqual(rest, {
      level: 'warn',
      message: 'request failed',
      requestId,
      operation: 'getPayment',
      client: 'shop',
      tenant: 'merchants',
      environment: 'sandbox',
      status: 504,
      error: 'OUTCOME_UNKNOWN',
      why: 'The bank did not answer in time.',
      proxyError: 'http_response_timeout',
    });
  });

  test("is loud by whose fault it is: the TPP's info, the bank's and ours a warning, a bug an error", async () => {
    for (const [code, level] of [
      ['ENVIRONMENT_UNKNOWN', 'info'],
      ['QUEUE_TIMEOUT', 'warn'],
      ['UPSTREAM_UNREACHED', 'warn'],
      ['INTERNAL', 'error'],
    ] as const) {
      assert.equal((await observed(new GatewayError(code, 'Why.'))).line.level, level);
    }
  });
});

describe('a bug', () => {
  test('is logged with the place where it happened, and the TPP is told nothing of it', async () => {
    const bug = new TypeError('cannot read properties of undefined');
    const { error, line } = await observed(bug);

    assert.equal(error.code, 'INTERNAL');
    assert.match(String(line.stack), /^TypeError\n {4}at .*observe\.test\.ts/);
    const told = errorResponse(error, { requestId, accept: undefined });
    assert.doesNotMatch(JSON.stringify(told.headers) + told.body, /TypeError|observe|cannot read|\bat /);
  });

  test('is logged without its message, which may quote what the request held', async () => {
    const quoting = [
      () => JSON.parse(`${iban} is no JSON`),
      () => new URL(`http://[${iban}`),
      () => {
        throw new Error(`one\n    at ${iban}`);
      },
      () => {
        throw iban;
      },
      () => {
        throw Object.assign(new Error('x', { cause: iban }), { iban });
      },
    ];
    for (const fail of quoting) {
      const thrown: unknown = await (async () => fail())().catch((error) => error);
      const { line } = await observed(thrown);
      assert.doesNotMatch(JSON.stringify(line), new RegExp(iban));
      assert.ok(String(line.stack).length > 0);
    }
  });

  test('keeps the code of an error of Node, which tells more than its name', async () => {
    const { line } = await observed(Object.assign(new Error(iban), { code: 'ERR_INVALID_CHAR' }));
    assert.match(String(line.stack), /^Error ERR_INVALID_CHAR\n/);
  });
});

describe('observeRefusal', () => {
  test('says why a request was refused at the door, and under which id it was answered', () => {
    const { log, line } = keeping();
    observeRefusal(watching(log))(new GatewayError('PATH_UNKNOWN', 'Nothing has this path.'), requestId);

    assert.deepEqual(line(), {
      level: 'info',
      message: 'request refused',
      requestId,
      status: 404,
      error: 'PATH_UNKNOWN',
      why: 'Nothing has this path.',
      proxyError: 'http_request_error',
    });
  });

  test('says so, too, of what was no request at all', () => {
    const { log, line } = keeping();
    observeRefusal(watching(log))(
      new GatewayError('HEADER_MALFORMED', 'Not HTTP.', { cause: new Error(iban) }),
    );
    assert.equal(line().requestId, undefined);
    assert.doesNotMatch(JSON.stringify(line()), new RegExp(iban));
  });
});
