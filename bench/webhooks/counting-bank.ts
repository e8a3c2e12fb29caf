/** A bank whose payments never change. It counts the reads of each tenant, which is in the payment's id. */

import { createServer } from 'node:http';
import { listen } from '../../test/kit/ports.ts';
import type { TestScope } from '../../test/kit/test-scope.ts';

export interface CountingBank {
  readonly baseUrl: string;
  /** By tenant. */
  readonly reads: Map<number, number>;
  /** Calls `onRead` at the next read of this payment. */
  watch(paymentId: string, onRead: () => void): void;
}

export async function startCountingBank(life: TestScope, status: string): Promise<CountingBank> {
  const reads = new Map<number, number>();
  const watched = new Map<string, () => void>();
  const body = JSON.stringify({ transactionStatus: status });
  const server = createServer((request, response) => {
    const [, id = '', tenant = ''] = /\/(p-(\d+)-\d+)\/status$/.exec(request.url ?? '') ?? [];
    reads.set(Number(tenant), (reads.get(Number(tenant)) ?? 0) + 1);
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(body);
    watched.get(id)?.();
    watched.delete(id);
  });
  server.keepAliveTimeout = 60_000;
  const port = await listen(server);
  life.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    reads,
    watch: (paymentId, onRead) => void watched.set(paymentId, onRead),
  };
}
