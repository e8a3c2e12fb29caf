/** The SQLite file of an instance: its process is killed under load, its disk is full, it is removed while it is in use. */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { call } from '../kit/call.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startBank, startGateway } from '../kit/gateway.ts';
import { startGatewayProcess } from '../kit/gateway-process.ts';
import { initiationCounts, paidTwice } from '../kit/payment-fleet.ts';
import { initiation } from '../kit/request.ts';
import { until } from '../kit/within.ts';
import { outcomeOf } from '../kit/writes.ts';

async function start(t: TestContext) {
  const bank = await startBank(t);
  const file = join(temporaryFolder(t), 'penstock.db');
  const sections = { environments: { sandbox: { baseUrl: bank.baseUrl } }, state: { file } };
  return { bank, file, sections };
}

/** The outcome of a payment; `no answer` if the connection broke. */
const pay = (url: string, requestId: string = randomUUID()) =>
  call(url, { ...initiation, requestId }).then(outcomeOf, () => 'no answer');

describe('the database file of an instance', () => {
  test('that is removed or replaced while it is used: payments are refused and not sent until it is back', async (t) => {
    const { bank, file, sections } = await start(t);
    const gateway = await startGateway(t, sections);
    assert.equal(await pay(gateway.url), '201');
    const isReady = async () => (await fetch(`${gateway.adminUrl}/health/ready`)).status === 200;
    const requestId = randomUUID();
    renameSync(file, `${file}.original`);
    assert.equal(await pay(gateway.url, requestId), '503 STATE_UNAVAILABLE');
    await until(10_000, 'the instance is not ready', async () => !(await isReady()));
    copyFileSync(`${file}.original`, file);
    assert.equal(await pay(gateway.url, requestId), '503 STATE_UNAVAILABLE');
    assert.equal(initiationCounts(bank).get(requestId), undefined);

    renameSync(`${file}.original`, file);
    await until(10_000, 'the instance is ready', isReady);
    assert.equal(await pay(gateway.url, requestId), '201');
    assert.equal(await pay(gateway.url, requestId), '201 replayed');
  });

  test('whose FILE-wal is removed or replaced while it is used: after a kill, every answer is replayed', async (t) => {
    const { bank, file, sections } = await start(t);
    const gateway = await startGatewayProcess(t, sections);
    const wal = `${file}-wal`;
    copyFileSync(wal, `${file}.older`);
    const requestIds: string[] = [];
    async function payTwenty(): Promise<void> {
      const ids = Array.from({ length: 20 }, () => randomUUID());
      requestIds.push(...ids);
      const outcomes = await Promise.all(ids.map((requestId) => pay(gateway.url, requestId)));
      assert.deepEqual([...new Set(outcomes)], ['201']);
    }
    for (const lose of [() => rmSync(wal), () => renameSync(`${file}.older`, wal)]) {
      await payTwenty();
      lose();
      await payTwenty();
      await gateway.stop('SIGKILL');
      await gateway.start();
      for (const requestId of requestIds) assert.equal(await pay(gateway.url, requestId), '201 replayed');
    }
    assert.deepEqual(paidTwice(bank), []);
  });

  test('on a full disk: payments are refused and not sent; what was answered is replayed after the next start', async (t) => {
    const { bank, sections } = await start(t);
    const limit = 'ulimit -f 3000; exec'; // blocks of 512 bytes: the system lets no file grow larger
    const full = await startGatewayProcess(t, sections, { shell: limit });
    const outcomes = new Map<string, string>();
    await until(60_000, 'the disk is full', async () => {
      const requestIds = Array.from({ length: 20 }, () => randomUUID());
      const answers = await Promise.all(requestIds.map((requestId) => pay(full.url, requestId)));
      for (const [index, requestId] of requestIds.entries()) outcomes.set(requestId, answers[index] ?? '');
      return answers.every((outcome) => outcome === '503 STATE_UNAVAILABLE');
    });
    const executed = initiationCounts(bank);
    for (const [requestId, outcome] of outcomes)
      if (outcome === '503 STATE_UNAVAILABLE') assert.equal(executed.get(requestId), undefined);
    await full.stop('SIGKILL');

    const gateway = await startGatewayProcess(t, sections);
    for (const [requestId, outcome] of outcomes) {
      const repeated = await pay(gateway.url, requestId);
      if (outcome === '201') assert.equal(repeated, '201 replayed');
      else assert.match(repeated, /^201|^409 DUPLICATE_IN_DOUBT/);
    }
    assert.deepEqual(paidTwice(bank), []);
  });

  test('whose process is killed under load, again and again: nothing is paid twice, and every answer is replayed', async (t) => {
    const { bank, sections } = await start(t);
    const gateway = await startGatewayProcess(t, sections);
    const answered = new Set<string>();
    const requestIds: string[] = [];
    for (let round = 0; round < 4; round++) {
      const ids = Array.from({ length: 60 }, () => randomUUID());
      requestIds.push(...ids);
      const before = answered.size;
      const answers = ids.map(async (requestId) => {
        if ((await pay(gateway.url, requestId)) === '201') answered.add(requestId);
      });
      await until(20_000, 'some are answered', () => answered.size > before + round * 10);
      await gateway.stop('SIGKILL');
      await Promise.all(answers);
      await gateway.start();
    }
    for (const requestId of requestIds) {
      let last = '';
      await until(
        30_000,
        () => `an outcome is final; the last one: ${last}`,
        async () => {
          last = await pay(gateway.url, requestId);
          return !/IN_FLIGHT|UNAVAILABLE/.test(last);
        },
      );
      assert.match(last, answered.has(requestId) ? /^201 replayed$/ : /^201|^409 DUPLICATE_IN_DOUBT/);
    }
    assert.deepEqual(paidTwice(bank), []);
  });
});
