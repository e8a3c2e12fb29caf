/** A bank whose payments change their status when the benchmark says so; it counts the status reads. */

import { createServer } from 'node:http';
import { listen } from '../../test/kit/ports.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';

export interface ChangingBank {
  readonly baseUrl: string;
  /** The status reads so far. */
  reads(): number;
  /** The payment has the next status from now on. @param payment its number, in the order of the initiations */
  change(payment: number): void;
  /** When the first response with the present status was sent: milliseconds of `performance.now()`; `undefined` if none was. */
  firstShownMs(payment: number): number | undefined;
}

/** The statuses that follow each other; none is final. */
const codes = ['RCVD', 'PDNG', 'ACTC', 'ACSP'];

export async function startChangingBank(life: TestScope): Promise<ChangingBank> {
  const versions = new Map<number, number>();
  const firstShown = new Map<number, number>();
  let created = 0;
  let reads = 0;
  const server = createServer((request, response) => {
    response.setHeader('Content-Type', 'application/json');
    if (request.method === 'POST') {
      const body = JSON.stringify({ transactionStatus: 'RCVD', paymentId: `p${created++}` });
      request.resume().on('end', () => response.writeHead(201).end(body));
      return;
    }
    reads += 1;
    const payment = Number(/\/p(\d+)\/status$/.exec(request.url ?? '')?.[1]);
    const version = versions.get(payment) ?? 0;
    if (version > 0 && !firstShown.has(payment)) firstShown.set(payment, performance.now());
    response.end(JSON.stringify({ transactionStatus: codes[version % codes.length] }));
  });
  server.keepAliveTimeout = 60_000;
  const port = await listen(server);
  life.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    reads: () => reads,
    change(payment) {
      firstShown.delete(payment);
      versions.set(payment, (versions.get(payment) ?? 0) + 1);
    },
    firstShownMs: (payment) => firstShown.get(payment),
  };
}
