/** What the measurements of budgets share: their requests, their rows, and a started contender with a probe. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Contender } from '../contenders/contender.ts';
import type { BenchRequest } from '../measure/load.ts';
import { initiatePayment } from '../measure/request-once.ts';
import { createRequestSender, type RequestSender } from '../measure/request-sender.ts';
import type { Testbed } from '../testbed.ts';
import {
  initiation,
  paymentRequest,
  standingOrderInitiation,
  standingOrderStatusRequest,
  statusRequest,
} from '../traffic.ts';
import type { RequestKind } from './limits.ts';
import { connectToProbe, type ProcessProbe } from './probe.ts';

/** One measured cost of one kind of request. */
export interface Cost {
  /** Such as `promises`. */
  readonly what: string;
  readonly kind: RequestKind;
  readonly contender: string;
  readonly measured: number;
  /** `undefined` for a baseline. */
  readonly budget: number | undefined;
  /** The same cost of libraries, for which there is no budget. */
  readonly ofLibraries?: number;
  /** Source lines, for `--where`. */
  readonly places?: readonly (readonly [place: string, count: number])[];
}

export interface ProbedContender {
  readonly probe: ProcessProbe;
  /** Sends one request of the kind. @returns milliseconds until the complete response */
  send(kind: RequestKind): Promise<number>;
}

interface ProbeOptions {
  /** For the socket of the probe. */
  readonly folder: string;
  readonly connections: number;
  /** Options of Node. */
  readonly heapOptions?: readonly string[];
}

/** Starts a contender that has Node options and a probe, runs `act`, and stops it. */
export async function withProbedContender(
  testbed: Testbed,
  contender: Contender,
  { folder, connections, heapOptions = withoutCollections }: ProbeOptions,
  act: (probed: ProbedContender) => Promise<void>,
): Promise<void> {
  const socket = join(folder, 'probe');
  rmSync(socket, { force: true });
  // Inherited by the contender's process.
  process.env.BENCH_PROBE = socket;
  process.env.BENCH_NODE_OPTIONS = [
    `--import=${join(import.meta.dirname, '../programs/probe.ts')}`,
    ...heapOptions,
  ].join(' ');
  await testbed.withContender(contender, async ({ port }) => {
    const probe = await connectToProbe(socket);
    const requests = createRequestSender(port, connections);
    try {
      const send = await sendersFor(port, contender, requests);
      await act({ probe, send });
    } finally {
      requests.close();
      probe.close();
      delete process.env.BENCH_PROBE;
      delete process.env.BENCH_NODE_OPTIONS;
    }
  });
}

/** A young generation that is not collected during a measurement. */
const withoutCollections = ['--expose-gc', '--min-semi-space-size=512', '--max-semi-space-size=512'];

/** Sends requests of one kind, a fixed number at a time. */
export async function sendMany(
  send: ProbedContender['send'],
  kind: RequestKind,
  count: number,
  atATime: number,
): Promise<void> {
  let sent = 0;
  const sendNext = async () => {
    while (sent++ < count) await send(kind);
  };
  await Promise.all(Array.from({ length: atATime }, sendNext));
}

export async function sendersFor(
  port: number,
  { forwards }: Contender,
  requests: RequestSender,
): Promise<(kind: RequestKind) => Promise<number>> {
  const pay = async (request: BenchRequest) => (forwards ? initiatePayment(port, request) : 'any-payment');
  const payment = await pay(initiation);
  const calls: Readonly<Record<RequestKind, readonly [BenchRequest, status: number]>> = {
    post: [initiation, 201],
    get: [paymentRequest(payment), 200],
    cachedStatus: [standingOrderStatusRequest(await pay(standingOrderInitiation)), 200],
    cachedFinalStatus: [statusRequest(payment), 200],
  };
  return (kind) => requests.send(...calls[kind]);
}
