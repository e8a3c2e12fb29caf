import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import { call, type Reply } from '../kit/call.ts';
import type { ContextReport } from '../kit/context-observer.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startBank } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { initiation, newCall, transfersPath } from '../kit/request.ts';
import { type StubResponse, startStubBank, statusResponse } from '../kit/stub-bank.ts';
import { until, within } from '../kit/within.ts';

/** A text in the body of every initiation. */
const marker = `remittance ${process.pid} of this test`;
const payment = { ...initiation, body: JSON.stringify({ ...JSON.parse(initiation.body), marker }) };

const observer = join(import.meta.dirname, '../kit/context-observer.ts');
const patient = { status: '20s', read: '20s', write: '20s' };

/** Starts a gateway process that reports on the contexts of its requests. */
async function startObserved(t: TestContext, baseUrl: string, deadlines: object = patient) {
  const socket = join(temporaryFolder(t), 'observer');
  const gateway = await startGatewayProcess(
    t,
    { environments: { sandbox: { baseUrl } }, deadlines, idempotency: { wait: '100ms' } },
    { variables: { NODE_OPTIONS: `--import=${observer}`, CONTEXT_OBSERVER: socket } },
  );
  /** @param searched a text to search for in a heap snapshot */
  const report = async (searched = ''): Promise<ContextReport> => {
    const connection = connect(socket);
    connection.write(`${Buffer.from(searched).toString('base64')}\n`);
    return JSON.parse(await within(60_000, 'a report', text(connection)));
  };
  /** Waits for a report that fulfils the condition. */
  const reportWhen = async (what: string, condition: (report: ContextReport) => boolean) => {
    let latest = await report();
    await until(20_000, what, async () => {
      if (condition(latest)) return true;
      latest = await report();
      return false;
    });
    return latest;
  };
  return {
    url: gateway.url,
    report,
    reportWhen,
    /** The check against the contract, which runs behind the request, keeps its body until then. */
    reportAtEnd: () =>
      reportWhen(
        'all requests are finished and checked',
        ({ created, finished, keptBodies }) => finished === created && keptBodies === 0,
      ),
    hasLogged: (message: string) => gateway.logged().some((line) => line.message === message),
  };
}

const reportOf = (requests: number): ContextReport => ({
  created: requests,
  finished: requests,
  lateWrites: [],
  keptBodies: 0,
  isTextKept: false,
});

const payment201: StubResponse = {
  status: 201,
  headers: [['Content-Type', 'application/json']],
  body: JSON.stringify({ transactionStatus: 'RCVD', paymentId: 'a-payment' }),
};

describe('context of a request that is finished', { concurrency: 2 }, () => {
  test('is not written by a response after the deadline, and its body is freed while the gateway waits for it', async (t) => {
    const late = Promise.withResolvers<StubResponse>();
    const bank = await startStubBank(t, () => late.promise);
    const gateway = await startObserved(t, bank.baseUrl, { ...patient, connect: '2900ms', write: '3s' });
    assert.equal((await call(gateway.url, payment)).header('Penstock-Error'), 'OUTCOME_UNKNOWN');
    assert.equal(bank.requests.length, 1);
    await gateway.reportAtEnd();
    assert.deepEqual(await gateway.report(marker), reportOf(1));

    late.resolve(payment201);
    await until(5_000, 'the late response is logged', () => gateway.hasLogged('late response'));
    assert.deepEqual(await gateway.report(), reportOf(1));
  });

  test('is not written behind the call of a TPP that has disconnected, and its body is freed', async (t) => {
    const response = Promise.withResolvers<StubResponse>();
    const bank = await startStubBank(t, () => response.promise);
    const gateway = await startObserved(t, bank.baseUrl);
    const disconnect = new AbortController();
    const reply = call(gateway.url, { ...payment, signal: disconnect.signal });
    await until(5_000, 'the bank has the payment', () => bank.requests.length === 1);
    disconnect.abort();
    await assert.rejects(reply, { name: 'AbortError' });
    response.resolve(payment201);

    await until(5_000, 'the outcome is logged', () => gateway.hasLogged('request'));
    await gateway.reportAtEnd();
    assert.deepEqual(await gateway.report(marker), reportOf(1));
  });

  test('is not written by the first of two attempts', async (t) => {
    const bank = await startBank(t);
    const gateway = await startObserved(t, bank.baseUrl);
    const read = () => call(gateway.url, newCall('GET', `${transfersPath}/a-payment`));
    await read();
    bank.injectFault({ name: 'close-before-answering' }, { times: 1 });
    await read();
    assert.equal(bank.requests.length, 3);
    assert.deepEqual(await gateway.reportAtEnd(), reportOf(2));
  });

  test('is not written by the flight that it shared with two others', async (t) => {
    const status = Promise.withResolvers<StubResponse>();
    const bank = await startStubBank(t, () => status.promise);
    const gateway = await startObserved(t, bank.baseUrl);
    const reads = [1, 2, 3].map(() => call(gateway.url, newCall('GET', `${transfersPath}/a-payment/status`)));
    await gateway.reportWhen('all reads have begun', (report) => report.created === 3);
    status.resolve(statusResponse('ACCP'));
    const isShared = (reply: Reply) => reply.header('Cache-Status')?.includes('collapsed');
    assert.equal((await Promise.all(reads)).filter(isShared).length, 2);
    assert.equal(bank.requests.length, 1);
    assert.deepEqual(await gateway.reportAtEnd(), reportOf(3));
  });
});
