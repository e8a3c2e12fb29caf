/** What a loss of confirmed writes costs while 200 payments are pending at the bank, and what operators see of it. */

import type { LossReport } from '../../test/kit/loss-report.ts';
import { type FirstInstance, type LossRunOptions, runLoss } from '../../test/kit/loss-run.ts';
import { type RedisLoss, redisLosses } from '../../test/kit/redis-losses.ts';
import type { ObservedReport } from '../../test/kit/state-reports.ts';
import { withCleanup } from '../cleanup.ts';
import type { Measure } from './measure.ts';

export const lossColumns = [
  'loss',
  'instances',
  'paid twice',
  'new payments refused',
  'repeats refused',
  'refused for',
  'GET /api/state',
  'operator',
];

const everyLoss = Object.keys(redisLosses) as RedisLoss[];
const flushed = 'Redis is flushed';

const runs: readonly Pick<LossRunOptions, 'loss' | 'firstInstance' | 'state'>[] = [
  ...everyLoss.map((loss) => ({ loss })),
  { loss: 'a failover loses the last writes', state: { confirm: { replicas: 0 } } },
  { loss: flushed, firstInstance: 'is killed' },
  { loss: flushed, firstInstance: 'is killed and restarted' },
  ...(
    [
      'Redis restarts without its disk',
      flushed,
      'one shard of a cluster comes back empty',
      'an older snapshot is restored',
    ] as const
  ).map((loss) => ({ loss, firstInstance: 'is paused' }) as const),
];

/** Every loss on two and on three instances. */
export const measureLosses: Measure = async () => {
  const rows: (readonly string[])[] = [];
  for (const run of runs) {
    for (const instances of [2, 3]) {
      await withCleanup(async (life) => {
        const { loss, firstInstance = 'runs', state } = run;
        const name = `${loss}${disturbances[firstInstance]}${state ? ', state.confirm.replicas: 0' : ''}`;
        const cells = await runLoss(life, { ...run, instances, payments: 200 }).then(cellsOf, failureOf);
        rows.push([name, String(instances), ...cells]);
      });
    }
  }
  return rows;
};

const disturbances: Readonly<Record<FirstInstance, string>> = {
  runs: '',
  'is paused': ', one instance is paused for 10 s',
  'is killed': ', one instance is killed',
  'is killed and restarted': ', one instance is killed and restarted',
};

function cellsOf(report: LossReport): readonly string[] {
  const { paidTwice, refusedPayments, refusedRepeats, refusedForMs, reports, audit } = report;
  return [
    String(paidTwice.length),
    String(refusedPayments),
    String(refusedRepeats),
    `${(refusedForMs / 1_000).toFixed(1)} s`,
    reports.map(statesOf).find((states) => states.includes('lost')) ?? statesOf(reports[0] ?? []),
    audit.includes('accept loss') ? 'accepts the loss' : 'nothing',
  ];
}

/** The sequence of states, such as `ok, lost (1 instance missing), ok`. */
function statesOf(reports: readonly ObservedReport[]): string {
  const states = reports.map(({ status, missing, uncovered }) => {
    const details = [
      ...(missing.length > 0 ? [`${missing.length} missing`] : []),
      ...(uncovered ? ['uncovered'] : []),
    ];
    return details.length > 0 ? `${status} (${details.join(', ')})` : status;
  });
  return states.join(', ');
}

function failureOf(error: unknown): readonly string[] {
  process.exitCode = 1;
  return [`failed: ${error instanceof Error ? error.message.split('\n')[0] : error}`];
}
