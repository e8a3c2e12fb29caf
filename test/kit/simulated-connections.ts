/** HTTP between simulated processes: Node's client and server, on connections in memory. What arrives at a paused process waits. */

import { Agent, createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { ConnectionPool } from '../../src/upstream/connection-pool.ts';
import type { SimulatedProcess } from './simulated-processes.ts';

/** What happens to a connection that is opened. */
export type ConnectionFate = 'accepted' | 'refused' | 'unanswered';

/** A server in a simulated process. */
export interface SimulatedServer {
  readonly process: SimulatedProcess;
  readonly server: Server;
}

export function createSimulatedServer(process: SimulatedProcess, serve: RequestListener): SimulatedServer {
  return { process, server: process.run(() => createServer(serve)) };
}

/** Where `call` sends its requests: each one has a connection of its own. */
export function createSimulatedAgent(client: SimulatedProcess, to: () => SimulatedServer): Agent {
  const agent = new Agent({ keepAlive: false });
  return Object.assign(agent, {
    createConnection() {
      const { process, server } = to();
      const [near, far] = connectedEnds(client, process);
      if (process.isKilled) near.fail('ECONNREFUSED');
      else process.deliver(() => server.emit('connection', far));
      return near;
    },
  });
}

/** The connections of a gateway to a bank: each request has one of its own. */
export function createSimulatedPool(
  gateway: SimulatedProcess,
  { process, server }: SimulatedServer,
  fateOf: () => ConnectionFate,
): ConnectionPool {
  return Object.assign(new Agent({ keepAlive: false, maxSockets: 100 }), {
    addRequest(request: { onSocket(socket: Socket): void }) {
      const [near, far] = connectedEnds(gateway, process);
      near.connecting = true;
      request.onSocket(near as unknown as Socket); // with the members of a socket that the gateway uses
      process.deliver(() => {
        const fate = fateOf();
        if (fate === 'refused') gateway.deliver(() => near.fail('ECONNREFUSED'));
        if (fate !== 'accepted') return;
        server.emit('connection', far);
        gateway.deliver(() => {
          near.connecting = false;
          near.emit('connect');
        });
      });
    },
    stats: () => ({ idle: [], busy: 0, waiting: 0 }),
    closeIdle() {},
    drain() {},
  });
}

/** One end of a connection. */
class End extends Duplex {
  connecting = false;
  readonly remoteAddress = '127.0.0.1';
  bytesRead = 0;
  readonly #process: SimulatedProcess;
  #other: End | undefined;

  constructor(process: SimulatedProcess) {
    super({ allowHalfOpen: true });
    this.#process = process;
    process.onKill(() => {
      this.#other?.receive((other) => other.fail('ECONNRESET'));
      this.destroy(); // Node keeps the parser of an open connection, and all that it refers to
    });
  }

  connectTo(other: End): void {
    this.#other = other;
  }

  /** At this end, when its process can. */
  receive(action: (end: this) => void): void {
    this.#process.deliver(() => {
      if (!this.destroyed) action(this);
    });
  }

  fail(code: string): void {
    this.destroy(Object.assign(new Error(code), { code }));
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: BufferEncoding, callback: () => void): void {
    if (!this.#process.isKilled)
      this.#other?.receive((other) => {
        other.bytesRead += bytes.length;
        other.push(bytes);
      });
    callback();
  }

  override _final(callback: () => void): void {
    this.#endOther();
    callback();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#endOther();
    callback(error);
  }

  #endOther(): void {
    if (this.#process.isKilled) return;
    this.#other?.receive((other) => {
      if (!other.readableEnded) other.push(null);
    });
  }

  setTimeout(): this {
    return this;
  }
  setNoDelay(): this {
    return this;
  }
  setKeepAlive(): this {
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  destroySoon(): void {
    this.end();
  }
}

function connectedEnds(one: SimulatedProcess, other: SimulatedProcess): readonly [near: End, far: End] {
  const [near, far] = [new End(one), new End(other)];
  near.connectTo(far);
  far.connectTo(near);
  for (const end of [near, far]) end.on('error', () => {});
  return [near, far];
}
