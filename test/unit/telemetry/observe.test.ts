import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { errorResponse } from '../../../src/http/write-error.ts';
import { GatewayError } from '../../../src/request/errors.ts';
import type { PisRequest, PisResponse } from '../../../src/request/messages.ts';
import type { RequestEvent } from '../../../src/request/request-events.ts';
import type { Handler } from '../../../src/request/stage.ts';
import { createAccessLog } from '../../../src/telemetry/access-log.ts';
import type { Log, LogFields } from '../../../src/telemetry/log.ts';
import { observe, observeRefusal } from '../../../src/telemetry/observe.ts';
import {
  combineObservers,
  type RequestRecord,
  type RunningRequest,
} from '../../../src/telemetry/request-record.ts';
import { environmentOf } from '../../kit/environment.ts';

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
    showsStatus: 'transactionStatus',
    carriesCredentials: false,
    paymentService: 'payments',
    paymentProduct: 'sepa-credit-transfers',
    paymentId: iban,
    unusualIds: [],
    path: `/berlingroup/v1/payments/sepa-credit-transfers/${iban}`,
    resource: `/payments/sepa-credit-transfers/${iban}`,
    search: '',
  },
  client: { name: 'shop', tenant: 'merchants', environments: ['sandbox'] },
  requestId,
  headers: [['Authorization', `Bearer ${iban}`]],
  body: Buffer.from(iban),
  arrivedAtMs: performance.now(),
  deadlineAtMs: performance.now() + 1_000,
};

const response: PisResponse = {
  status: 200,
  headers: [['Set-Cookie', iban]],
  body: Buffer.from(iban),
  servedFrom: 'bank',
  environment: 'sandbox',
  upstreamMs: 12.345,
};

const observerOf = (log: Log) => combineObservers([createAccessLog(log)]);

interface Line extends LogFields {
  readonly level: string;
  readonly message: string;
}

/** The fields that a line contains: the log omits undefined ones. */
const definedFields = (fields: LogFields): LogFields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** A log that must get exactly one line, and that line. */
function singleLineLog() {
  const lines: Line[] = [];
  const log: Log = (level, message, fields = {}) =>
    void lines.push({ ...definedFields(fields), level, message });
  const line = (): Line => {
    const [first, ...more] = lines;
    assert.ok(first);
    assert.equal(more.length, 0, 'one line per request');
    return first;
  };
  return { log, line };
}

/** What `observe` logs and rethrows if the next stage throws this. */
async function observeFailure(thrown: unknown, environment?: PisRequest['environment']) {
  const { log, line } = singleLineLog();
  const failing: Handler<PisRequest> = (request) => {
    request.environment = environment;
    return Promise.reject(thrown);
  };
  const error: unknown = await observe(observerOf(log))({ ...read }, failing).catch((rethrown) => rethrown);
  assert.ok(error instanceof GatewayError);
  await setImmediate();
  return { error, line: line() };
}

describe('the access log line of a request', () => {
  test('names operation, client, tenant, environment, status and duration', async () => {
    const { log, line } = singleLineLog();
    assert.equal(await observe(observerOf(log))(read, async () => response), response);
    await setImmediate();

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

  test('says that the bank left the outcome of a write open', async () => {
    const { log, line } = singleLineLog();
    const write = {
      ...read,
      operation: { ...read.operation, name: 'initiatePayment', lane: 'write' },
    } as const;
    await observe(observerOf(log))(write, async (request) => {
      request.recordEvent?.({ what: 'recorded', as: 'in-doubt' });
      return response;
    });
    await setImmediate();
    const { level, message, outcome } = line();
    assert.deepEqual([level, message, outcome], ['info', 'request', 'in-doubt']);
  });

  test('names the reason of an error, and the same error is thrown on', async () => {
    const failure = new GatewayError('OUTCOME_UNKNOWN', 'The bank did not respond before the deadline.', {
      environment: 'sandbox',
      cause: new Error(iban),
    });
    const { error, line } = await observeFailure(failure);

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
      why: 'The bank did not respond before the deadline.',
      proxyError: 'http_response_timeout',
    });
  });

  test('names the environment that was chosen before the error, and so does the error', async () => {
    const sandbox = environmentOf();
    for (const thrown of [new GatewayError('CIRCUIT_OPEN', 'The bank fails.'), new Error('a bug')]) {
      const { error, line } = await observeFailure(thrown, sandbox);
      assert.deepEqual([error.environment, line.environment], ['sandbox', 'sandbox']);
    }
  });

  test('has level info for an error of the TPP, warn for the bank and the gateway, and error for a bug', async () => {
    for (const [code, level] of [
      ['ENVIRONMENT_UNKNOWN', 'info'],
      ['QUEUE_TIMEOUT', 'warn'],
      ['UPSTREAM_UNREACHED', 'warn'],
      ['INTERNAL', 'error'],
    ] as const) {
      assert.equal((await observeFailure(new GatewayError(code, 'Why.'))).line.level, level);
    }
  });
});

describe('the access log line of an internal error', () => {
  test('contains the stack, which the response to the TPP does not', async () => {
    const bug = new TypeError('cannot read properties of undefined');
    const { error, line } = await observeFailure(bug);

    assert.equal(error.code, 'INTERNAL');
    assert.match(String(line.stack), /^TypeError\n {4}at .*observe\.test\.ts/);
    const toTpp = errorResponse(error, { requestId, accept: undefined });
    assert.doesNotMatch(JSON.stringify(toTpp.headers) + toTpp.body, /TypeError|observe|cannot read|\bat /);
  });

  test('omits the message, which may quote the request', async () => {
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
      const { line } = await observeFailure(thrown);
      assert.doesNotMatch(JSON.stringify(line), new RegExp(iban));
      assert.ok(String(line.stack).length > 0);
    }
  });

  test('contains the code of an error of Node', async () => {
    const { line } = await observeFailure(Object.assign(new Error(iban), { code: 'ERR_INVALID_CHAR' }));
    assert.match(String(line.stack), /^Error ERR_INVALID_CHAR\n/);
  });
});

describe('the access log line of a refused request', () => {
  test('names the reason and the X-Request-ID of the response', () => {
    const { log, line } = singleLineLog();
    observeRefusal(observerOf(log))(new GatewayError('PATH_UNKNOWN', 'Nothing has this path.'), requestId);

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

  test('has no X-Request-ID for input that is not HTTP', () => {
    const { log, line } = singleLineLog();
    observeRefusal(observerOf(log))(
      new GatewayError('HEADER_MALFORMED', 'Not HTTP.', { cause: new Error(iban) }),
    );
    assert.equal(line().requestId, undefined);
    assert.doesNotMatch(JSON.stringify(line()), new RegExp(iban));
  });
});

test('observers see the record of a request before an event that follows in the same tick', async () => {
  const seen: string[] = [];
  const observer = {
    onRequestStart: ({ events }: RunningRequest) => void seen.push(`start with ${events.length} events`),
    onRequestEnd: ({ events }: RequestRecord) => void seen.push(`end after ${events.length} events`),
    onLateEvent: (event: RequestEvent, { events }: RequestRecord) =>
      void seen.push(`${event.what} as event ${events.length}`),
  };
  const request = { ...read };
  await observe(observer)(request, async ({ recordEvent }) => {
    recordEvent?.({ what: 'cache', verdict: 'miss' });
    return response;
  });
  request.recordEvent?.({ what: 'late-answer', status: 201 });
  assert.deepEqual(seen, ['start with 0 events', 'end after 1 events', 'late-answer as event 2']);
  await setImmediate();
  assert.equal(seen.length, 3);
});
