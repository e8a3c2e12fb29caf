/** Measures the contenders of one scenario in rounds: all once, then all again. */

import type { Contender } from './contenders/contender.ts';
import { askOnce } from './measure/check.ts';
import { nameOf, type Pressure } from './measure/load.ts';
import { type Sample, sample } from './measure/sample.ts';
import { sendSteadily } from './measure/steady.ts';
import { runWrk } from './measure/wrk.ts';
import type { Scenario } from './scenarios.ts';
import type { OnStage, Stage } from './testbed.ts';
import { answer, initiation } from './traffic.ts';

export interface Effort {
  readonly rounds: number;
  /** Of each run, and before the first one of each contender. */
  readonly seconds: number;
  readonly warmUpSeconds: number;
  /** Where the scenario itself does not say. */
  readonly pressures: readonly Pressure[];
}

/** One run of one contender. */
export interface Run extends Sample {
  readonly contender: string;
  /** Such as `32 connections`. */
  readonly pressure: string;
  readonly round: number;
}

const warmUp: Pressure = { kind: 'closed', connections: 32 };

/** @param told hears of each run as soon as it is over */
export async function compare(
  stage: Stage,
  scenario: Scenario,
  { rounds, seconds, warmUpSeconds, pressures }: Effort,
  told: (run: Run) => void,
): Promise<readonly Run[]> {
  const runs: Run[] = [];
  const inTurn = (contender: Contender, round: number) => async (server: OnStage) => {
    const request = scenario.request(await newPayment(server.port, contender));
    const load = (pressure: Pressure, forSeconds: number) =>
      pressure.kind === 'closed'
        ? runWrk(request, { ...pressure, port: server.port, seconds: forSeconds }, stage.places.others)
        : sendSteadily(request, { ...pressure, port: server.port, seconds: forSeconds });
    const check = async () => {
      const body = await askOnce(server.port, request, scenario.status);
      if (request.method === 'GET' && body !== answer)
        throw new Error(`${contender.name} has answered ${body}`);
    };

    await check();
    await load(warmUp, warmUpSeconds);
    for (const pressure of scenario.pressures ?? pressures) {
      const measured = await sample(server.pids, () => load(pressure, seconds));
      const run = { contender: contender.name, pressure: nameOf(pressure), round, ...measured };
      runs.push(run);
      told(run);
    }
    await check();
  };

  for (let round = 1; round <= rounds; round++)
    for (const contender of scenario.contenders) await stage.with(contender, inTurn(contender, round));
  return runs;
}

/** A payment that the contender has seen being made: Penstock then knows where it lives. @returns its id */
async function newPayment(port: number, { forwards }: Contender): Promise<string> {
  if (!forwards) return 'one-of-nobody';
  const { paymentId } = JSON.parse(await askOnce(port, initiation, 201));
  return String(paymentId);
}
