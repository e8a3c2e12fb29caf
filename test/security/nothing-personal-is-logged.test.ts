/**
 * The story: half the company may read the logs, and who reads them finds a payer's IBAN, or a token that still
 * works. So marked values are put wherever a TPP or a bank can put one, a few hundred requests of all kinds are
 * sent, and everything that was written down is searched.
 */

import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { format } from 'node:util';
import { createGateway } from '../../src/gateway.ts';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import type { Fault } from '../../src/simulated-bank/faults.ts';
import { createLog } from '../../src/telemetry/log.ts';
import { brokenRequests, refusedRequests } from '../kit/broken-requests.ts';
import {
  anyCanary,
  moods,
  orderWithCanaries,
  paymentIdWithCanary,
  requestWithCanaries,
} from '../kit/canaries.ts';
import { configOf, startBank, unlimited } from '../kit/gateway.ts';
import { connectRaw, type RawAnswer, sendRaw } from '../kit/raw.ts';
import { paymentsPath } from '../kit/tpp.ts';

interface Watched {
  readonly bank: SimulatedBank;
  readonly port: number;
  /** Every line of the log, as JSON and as text, at its most talkative. */
  readonly json: readonly string[];
  readonly text: readonly string[];
  /** Whatever came out elsewhere: on the console, or as a warning of the process. */
  readonly elsewhere: readonly string[];
}

/** A gateway and a bank; all that either says is kept. */
async function startWatched(t: TestContext): Promise<Watched> {
  const json: string[] = [];
  const text: string[] = [];
  const elsewhere: string[] = [];
  const logs = [
    createLog({ level: 'trace', format: 'json' }, { write: (line) => void json.push(line) }),
    createLog({ level: 'trace', format: 'text' }, { write: (line) => void text.push(line) }),
  ];
  for (const name of ['log', 'info', 'warn', 'error', 'debug', 'trace'] as const)
    t.mock.method(console, name, (...said: unknown[]) => void elsewhere.push(format(...said)));
  const hear = (warning: Error) => void elsewhere.push(format(warning));
  process.on('warning', hear);
  t.after(() => process.off('warning', hear));

  const bank = await startBank(t);
  bank.nextPaymentId(paymentIdWithCanary);
  const sections = {
    listen: { port: 0 },
    admin: { port: 0 },
    environments: { sandbox: { baseUrl: bank.baseUrl } },
    deadlines: { connect: '200ms', status: '400ms', read: '400ms', write: '400ms' },
    shaping: { maxWait: { write: '100ms', read: '100ms', status: '100ms' } },
    idempotency: { wait: '100ms' },
  };
  const gateway = createGateway(configOf(unlimited(sections)), (...line) => {
    for (const log of logs) log(...line);
  });
  const { tppPort: port } = await gateway.start();
  t.after(() => gateway.stop());
  return { bank, port, json, text, elsewhere };
}

const aboutRequest = (line: string) => /"message":"request( failed| refused)?"/.test(line);

/** One request of each operation, on a payment whose id is marked, and on ones that nobody knows. */
function oneOfEach(): readonly string[] {
  const payment = `${paymentsPath}/${paymentIdWithCanary}`;
  const ask = (line: string, body = '') => requestWithCanaries(`${line} HTTP/1.1`, [], body);
  return [
    ask(`POST ${paymentsPath}`, orderWithCanaries),
    ask(`GET ${payment}`),
    ask(`GET ${payment}/status`),
    ask(`POST ${payment}/authorisations`, '{"scaAuthenticationData":"canary-otp"}'),
    ask(`GET ${payment}/authorisations`),
    ask(`GET ${payment}/authorisations/canary-authorisation`),
    ask('GET /berlingroup/v1/periodic-payments/canary-product/canary-id'),
    ask(`DELETE ${payment}`),
  ];
}

const sendAll = ({ port }: Watched): Promise<readonly RawAnswer[]> =>
  Promise.all(oneOfEach().map((request) => sendRaw(port, request)));

/** After such an answer nothing is sent for a while. */
const asksForPause = (mood: Fault): boolean =>
  ['too-many-requests', 'rate-limit'].includes(mood.name) || (mood.name === 'status' && mood.status === 429);

/** What the gateway itself says to a TPP repeats nothing: neither what the bank said, nor what was asked. */
function assertTellsNothing({ headers, body }: RawAnswer): void {
  if (!headers.has('penstock-error')) return; // the bank's own answer, passed on as it is
  assert.doesNotMatch(JSON.stringify([...headers]) + body, anyCanary);
}

function assertNothingLogged({ json, text, elsewhere }: Watched): void {
  assert.equal(json.length, text.length);
  for (const line of [...json, ...text, ...elsewhere]) assert.doesNotMatch(line, anyCanary);
}

/** The search would find something: the values did reach the bank, came back from it, and calls of all kinds failed. */
function assertMarked({ bank }: Watched, answers: readonly RawAnswer[]): void {
  assert.ok(bank.requests.every(({ rawHeaders }) => anyCanary.test(rawHeaders.join())));
  assert.ok(answers.some(({ body }) => anyCanary.test(body)));
  const codes = new Set(answers.map(({ headers }) => headers.get('penstock-error')));
  assert.deepEqual([...codes].toSorted(), [
    'OUTCOME_UNKNOWN',
    'UPSTREAM_MALFORMED',
    'UPSTREAM_UNREACHED',
    undefined,
  ]);
}

describe('H9: nothing personal is logged, and no error repeats anything', () => {
  test('whatever the operation, and whatever the bank answers', async (t) => {
    const watched = await startWatched(t);
    const answers: RawAnswer[] = [];
    for (const mood of moods.filter((one) => !asksForPause(one))) {
      watched.bank.heal();
      watched.bank.fail(mood);
      answers.push(...(await sendAll(watched)));
    }
    await watched.bank.stop();
    answers.push(...(await sendAll(watched)));

    answers.forEach(assertTellsNothing);
    assertNothingLogged(watched);
    assert.equal(watched.json.filter(aboutRequest).length, answers.length, 'one line a request');
    assertMarked(watched, answers);
  });

  for (const mood of moods.filter(asksForPause)) {
    test(`nor while the bank rests, on its own wish: ${mood.name}`, async (t) => {
      const watched = await startWatched(t);
      watched.bank.fail(mood);
      const answers = [...(await sendAll(watched)), ...(await sendAll(watched))];
      answers.forEach(assertTellsNothing);
      assertNothingLogged(watched);
      assert.equal(watched.json.filter(aboutRequest).length, answers.length, 'one line a request');
      assert.equal(answers.at(-1)?.headers.get('penstock-error'), 'QUEUE_TIMEOUT');
    });
  }

  test('whatever the door refuses', async (t) => {
    const watched = await startWatched(t);
    for (const request of refusedRequests) {
      const answer = await sendRaw(watched.port, request);
      assertTellsNothing(answer);
      assert.ok(answer.status >= 400, request.slice(0, 80));
    }

    assertNothingLogged(watched);
    assert.equal(watched.json.filter(aboutRequest).length, refusedRequests.length);
  });

  test('whatever else is sent that is no HTTP, or no longer', async (t) => {
    const watched = await startWatched(t);
    const answers = await Promise.all(
      brokenRequests.map(async (bytes) => {
        const connection = await connectRaw(watched.port);
        connection.send(bytes);
        connection.end();
        const answer = await connection.answer().catch(() => undefined); // closed without a word
        connection.destroy();
        return answer;
      }),
    );

    for (const answer of answers) if (answer) assertTellsNothing(answer);
    assertNothingLogged(watched);
    assert.ok(watched.json.length > 0);
  });

  test('but the X-Request-ID is, in every line about a request', async (t) => {
    const { port, json } = await startWatched(t);
    for (const request of oneOfEach()) {
      const { headers } = await sendRaw(port, request);
      const id = headers.get('x-request-id') ?? '';
      assert.ok(request.includes(id));
      assert.equal(JSON.parse(json.at(-1) ?? '').requestId, id);
    }
  });
});
