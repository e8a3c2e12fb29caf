/** Measures all contenders of one scenario. Each round starts every contender once. */

import type { Contender } from './contenders/contender.ts';
import { sendAtFixedRate } from './measure/fixed-rate.ts';
import { type LoadProfile, nameOfProfile } from './measure/load.ts';
import { initiatePayment, requestOnce } from './measure/request-once.ts';
import { sample } from './measure/sample.ts';
import { runWrk } from './measure/wrk.ts';
import type { Scenario } from './scenarios.ts';
import type { Run } from './summary.ts';
import type { RunningServer, Testbed } from './testbed.ts';
import { cachedBody } from './traffic.ts';

export interface BenchOptions {
  readonly rounds: number;
  /** Duration of each run. */
  readonly seconds: number;
  readonly warmUpSeconds: number;
  /** The load profiles for scenarios that do not define their own. */
  readonly loadProfiles: readonly LoadProfile[];
}

const warmUp: LoadProfile = { kind: 'closed', connections: 32 };

/** @param onRun called after each run */
export async function compare(
  testbed: Testbed,
  scenario: Scenario,
  { rounds, seconds, warmUpSeconds, loadProfiles }: BenchOptions,
  onRun: (run: Run) => void,
): Promise<readonly Run[]> {
  const runs: Run[] = [];
  const measureContender = (contender: Contender, round: number) => async (server: RunningServer) => {
    const request = scenario.request(contender.forwards ? await initiatePayment(server.port) : 'any-payment');
    const load = (profile: LoadProfile, forSeconds: number) =>
      profile.kind === 'closed'
        ? runWrk(request, { ...profile, port: server.port, seconds: forSeconds }, testbed.cores.others)
        : sendAtFixedRate(request, { ...profile, port: server.port, seconds: forSeconds });
    const check = async () => {
      const body = await requestOnce(server.port, request, scenario.status);
      if (request.method === 'GET' && body !== cachedBody)
        throw new Error(`${contender.name} responded with an unexpected body: ${body}`);
    };

    await check();
    await load(warmUp, warmUpSeconds);
    for (const profile of scenario.loadProfiles ?? loadProfiles) {
      const measured = await sample(server.pids, () => load(profile, seconds));
      const run = { contender: contender.name, loadProfile: nameOfProfile(profile), round, ...measured };
      runs.push(run);
      onRun(run);
    }
    await check();
  };

  for (let round = 1; round <= rounds; round++)
    for (const contender of scenario.contenders)
      await testbed.withContender(contender, measureContender(contender, round), scenario.upstream);
  return runs;
}
