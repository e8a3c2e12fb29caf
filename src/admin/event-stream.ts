/** `GET /api/events`: the dashboard as server-sent events. A snapshot comes at once, then the changes every second. */

import type { ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import type { Response } from 'express';
import { createDashboard, type DashboardSources } from './dashboard-snapshot.ts';
import type { Operator } from './operator-access.ts';

export interface EventStream {
  /** Sends events to this operator until the connection closes. */
  subscribe(operator: Operator, response: Response): void;
  /** The operators of the open streams. */
  operators(): readonly Operator[];
  /**
   * To be called every second: ends the streams of operators who may not read any more, takes a new snapshot, and sends its changes
   * to all readers.
   */
  publish(): void;
  /** Ends every stream, and refuses new ones: the instance is stopping. */
  close(): void;
}

/** A different id at the same address means that the instance was restarted, or that a load balancer chose another one. */
interface InstanceInfo {
  /** Its name in log lines and in the list of instances. */
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** ISO 8601, UTC. */
  readonly startedAt: string;
  readonly node: string;
}

/** About ten snapshots of five minutes. A reader with more unsent bytes is disconnected, and may reconnect. */
const maxUnsentBytes = 1_048_576;

/** All readers together must not use the memory that requests need. */
const maxReaders = 100;
/** A script that opens streams and forgets them must not keep the other operators from the console. */
const maxReadersPerOperator = 50;

interface EventStreamSources extends DashboardSources {
  readonly instanceId: string;
  /** Whether an operator whose stream is open still has access. */
  readonly mayRead: (operator: Operator) => boolean;
}

/** @param sources must not read from the database (ADR 55) */
export function createEventStream(sources: EventStreamSources): EventStream {
  const dashboard = createDashboard(sources);
  const instance = describeInstance(sources.instanceId);
  const readers = new Map<ServerResponse, Operator>();
  let closed = false;

  /** @returns `undefined` if the operator may open another stream */
  function refusalFor(name: string): string | undefined {
    if (closed) return 'This instance is stopping.';
    if (readers.size >= maxReaders)
      return `The limit of ${maxReaders} event streams per instance is reached; close one.`;
    const own = [...readers.values()].filter((one) => one.name === name);
    if (own.length < maxReadersPerOperator) return undefined;
    return `The limit of ${maxReadersPerOperator} event streams per operator and instance is reached; close one.`;
  }

  return {
    subscribe(operator, response) {
      const { name, role } = operator;
      const refusal = refusalFor(name);
      if (refusal !== undefined) {
        response.status(503).json({ error: refusal });
        return;
      }
      response.status(200).set({
        'Content-Type': 'text/event-stream; charset=utf-8',
        'X-Accel-Buffering': 'no', // nginx and others forward each event at once
      });
      if (response.req.method === 'HEAD') {
        response.end();
        return;
      }
      response.write(
        formatEvent('snapshot', { operator: { name, role }, instance, ...dashboard.snapshot() }),
      );
      readers.set(response, operator);
      response.on('error', () => {}).once('close', () => readers.delete(response));
    },
    operators: () => [...readers.values()],
    publish() {
      for (const [reader, operator] of readers)
        if (!sources.mayRead(operator)) {
          readers.delete(reader);
          reader.end(formatEvent('end', { why: 'Your access has ended; sign in again.' }));
        }
      const event = formatEvent('tick', dashboard.refresh());
      for (const reader of readers.keys()) {
        if (reader.writableLength > maxUnsentBytes) reader.destroy();
        else reader.write(event);
      }
    },
    close() {
      closed = true;
      for (const reader of readers.keys())
        reader.end(formatEvent('end', { why: 'This instance is stopping.' }));
    },
  };
}

/** JSON contains no line breaks, so one `data` line is enough (WHATWG HTML, server-sent events). */
const formatEvent = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

const describeInstance = (id: string): InstanceInfo => ({
  id,
  host: hostname(),
  pid: process.pid,
  startedAt: new Date().toISOString(),
  node: process.version,
});
