/** `GET /api/events`: what the console shows, as server-sent events: a snapshot at once, then a tick every second. */

import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import type { RequestHandler } from 'express';
import { createDashboard, type Dashboard, type DashboardSources } from './dashboard-snapshot.ts';
import { operatorName } from './request-schemas.ts';

export interface EventStream {
  readonly handler: RequestHandler;
  /** Looks, and tells all who watch; once a second. */
  tick(): void;
  /** Ends every stream and begins none any more: the instance is going. */
  end(): void;
}

/** Which instance this is. Another id under the same address: it was restarted, or a load balancer chose another. */
interface InstanceInfo {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** ISO 8601, UTC. */
  readonly startedAt: string;
  readonly node: string;
}

/**
 * What may wait to be sent to one reader, in bytes: about ten snapshots of five minutes. Whoever is further behind is
 * dropped, and may come again.
 */
const maxUnsentBytes = 1_048_576;

/** How many may read at the same time: all of them together must not take the memory that requests need. */
const maxReaders = 100;

/** Reads nothing from the shared state, and looks once for all, however many watch. */
export function createEventStream(sources: DashboardSources): EventStream {
  const dashboard: Dashboard = createDashboard(sources);
  const instance = describeInstance();
  const readers = new Set<ServerResponse>();
  let closed = false;

  return {
    handler(request, response) {
      if (closed) {
        response.status(503).json({ error: 'This instance is stopping.' });
        return;
      }
      if (readers.size >= maxReaders) {
        response.status(503).json({ error: `${maxReaders} watch this instance already.` });
        return;
      }
      response.status(200).set({
        'Content-Type': 'text/event-stream; charset=utf-8',
        'X-Accel-Buffering': 'no', // nginx and its like pass each event on as it comes
      });
      if (request.method === 'HEAD') {
        response.end();
        return;
      }
      const operator = { name: operatorName(response), role: String(response.locals.role) };
      response.write(formatEvent('snapshot', { operator, instance, ...dashboard.snapshot() }));
      readers.add(response);
      response.on('error', () => {}).once('close', () => readers.delete(response));
    },
    tick() {
      const event = formatEvent('tick', dashboard.refresh());
      for (const reader of readers) {
        if (reader.writableLength > maxUnsentBytes) reader.destroy();
        else reader.write(event);
      }
    },
    end() {
      closed = true;
      for (const reader of readers) reader.end(formatEvent('end', { why: 'This instance is stopping.' }));
    },
  };
}

/** JSON has no line breaks of its own, so one `data` line is enough (WHATWG HTML, server-sent events). */
const formatEvent = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

const describeInstance = (): InstanceInfo => ({
  id: randomUUID(),
  host: hostname(),
  pid: process.pid,
  startedAt: new Date().toISOString(),
  node: process.version,
});
