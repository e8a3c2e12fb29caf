/** `penstock reload --all`: all instances load their configuration again, and each one answers. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { callAdminApi } from '../kit/admin-api.ts';
import { readInstances, readStatuses, readTimeline } from '../kit/fleet-view.ts';
import type { Sections } from '../kit/gateway.ts';
import type { GatewayProcess } from '../kit/gateway-process.ts';
import { skipWithoutPostgres } from '../kit/postgres.ts';
import { until } from '../kit/within.ts';
import { kindsOf, nameOf, sameOn, startInstances } from './fleet-view-contract.ts';

async function reloadAll(instance: GatewayProcess) {
  const command = instance.run('reload', '--all', '--reason', 'a new deadline');
  return { exitCode: await command.exitCode(), stdout: command.stdout(), stderr: command.stderr() };
}

describe('a reload of all instances', { skip: skipWithoutPostgres }, () => {
  test('is answered by each of them: applied, needs a restart, refused, or no answer', async (t) => {
    const { sections, instances } = await startInstances(t, undefined, 2);
    const [one = assert.fail(), other = assert.fail()] = instances;
    const rewrite = (instance: GatewayProcess, more: Sections | string) =>
      instance.rewrite(typeof more === 'string' ? more : { ...sections, ...more });
    await sameOn(
      instances,
      'both instances',
      readStatuses,
      (all) => Object.values(all).filter((status) => status === 'up').length === 2,
    );

    for (const instance of instances) rewrite(instance, { deadlines: { write: '20s' } });
    const applied = await reloadAll(one);
    assert.deepEqual([applied.exitCode, applied.stderr], [0, '']);
    const shown = await readInstances(other);
    const [hash = ''] = shown.map(({ configurationHash }) => configurationHash.slice(0, 12));
    assert.deepEqual(
      applied.stdout.trimEnd().split('\n'),
      instances
        .map(nameOf)
        .toSorted()
        .map((name) => `${name}: applied, configuration ${hash}`),
    );
    const timeline = await sameOn(
      instances,
      'both reloads',
      readTimeline,
      (entries) => kindsOf(entries, 'reload').length === 2,
    );
    for (const { who, text } of kindsOf(timeline, 'reload'))
      assert.deepEqual([who, text], ['admin', 'configuration reloaded: deadlines.write: 35s -> 20s']);
    const audited: readonly { action: string; details: { instance?: string } }[] = JSON.parse(
      (await callAdminApi(one, 'GET', '/api/audit')).text,
    );
    assert.deepEqual(
      audited
        .flatMap(({ action, details }) => (action === 'reload configuration' ? details.instance : []))
        .toSorted(),
      instances.map(nameOf).toSorted(),
    );
    rewrite(one, { deadlines: { write: '20s' }, state: { ...Object(sections.state), timeout: '300ms' } });
    rewrite(other, 'listen: nowhere');
    const answers = await reloadAll(one);
    assert.equal(answers.exitCode, 78);
    assert.match(answers.stderr, /Not every instance uses the new configuration/);
    assert.match(
      answers.stdout,
      new RegExp(`^${nameOf(one)}: applied, .*, a restart is required for:\n  state.timeout: `, 'm'),
    );
    assert.match(
      answers.stdout,
      new RegExp(`^${nameOf(other)}: refused, configuration ${hash}\n  .*listen`, 'm'),
    );

    other.command.kill('SIGSTOP');
    const requestAll = () => callAdminApi(one, 'POST', '/api/config/reload', { all: true });
    const both = await Promise.all([requestAll(), requestAll()]);
    const [asked = assert.fail(), refused = assert.fail()] = both.toSorted((a, b) => a.status - b.status); // either of them is first
    assert.deepEqual([refused.status, /another reload .* is in progress/.test(refused.text)], [409, true]);
    const outcomes = JSON.parse(asked.text).instances.map((answer: { name: string; outcome: string }) => [
      ...[answer.name, answer.outcome],
    ]);
    assert.deepEqual(Object.fromEntries(outcomes), {
      [nameOf(one)]: 'applied',
      [nameOf(other)]: 'no answer',
    });

    // When it continues, it loads its file as well.
    rewrite(other, { deadlines: { write: '19s' } });
    other.command.kill('SIGCONT');
    await until(20_000, 'it has reloaded', async () => {
      const { text } = await callAdminApi(other, 'GET', '/api/config');
      return text.includes('19s');
    });
  });
});
