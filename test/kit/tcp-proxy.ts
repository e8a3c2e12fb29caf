/** A TCP proxy in front of a server on this machine that can delay and discard data, and cut connections. */

import { connect, createServer, type Socket } from 'node:net';
import { listen } from './ports.ts';
import type { TestScope } from './test-scope.ts';

export interface TcpProxy {
  readonly port: number;
  /** Delays all further data from clients by `ms` milliseconds; 0 at first. */
  delayBy(ms: number): void;
  /** Discards all further data of the server; the connections stay open, and clients still reach the server. */
  discardResponses(): void;
  /** Passes no further data in either direction until `resume`; connections stay open, as those of a frozen server. */
  freeze(): void;
  resume(): void;
  /** Cuts all connections, and refuses new ones until `accept`. */
  refuse(): void;
  accept(): void;
  /**
   * Cuts a connection on which a client sends these bytes: before they reach the server, or when its answer arrives. A prepared statement of
   * PostgreSQL counts as its text.
   *
   * @returns a function that says how many connections were cut, and one that ends this
   */
  cutAt(when: 'before' | 'after', sent: RegExp): { readonly cuts: () => number; readonly end: () => void };
}

/** @param port of the server */
export async function startTcpProxy(life: TestScope, port: number): Promise<TcpProxy> {
  let delayMs = 0;
  let isDiscarding = false;
  let isRefusing = false;
  let thawed: PromiseWithResolvers<void> | undefined;
  let cut: { readonly when: 'before' | 'after'; readonly sent: RegExp } | undefined;
  let cuts = 0;
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ port, host: '127.0.0.1', noDelay: true });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
    }
    if (isRefusing) client.destroy();
    const withStatements = createStatementReader();
    let isCutAtAnswer = false;
    const cutNow = () => {
      cuts += 1;
      client.destroy();
      upstream.destroy();
    };
    client.on('data', async (bytes) => {
      await thawed?.promise;
      const sent = withStatements(bytes.toString('latin1'));
      if (cut?.sent.test(sent)) {
        if (cut.when === 'before') return cutNow();
        isCutAtAnswer = true;
      }
      if (delayMs === 0) upstream.write(bytes);
      else setTimeout(() => upstream.write(bytes), delayMs);
    });
    upstream.on('data', async (bytes) => {
      await thawed?.promise;
      if (isCutAtAnswer) return cutNow();
      if (!isDiscarding) client.write(bytes);
    });
    client.on('end', () => upstream.end());
    upstream.on('end', () => client.end());
  });
  const proxyPort = await listen(server);
  life.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    port: proxyPort,
    delayBy(ms) {
      delayMs = ms;
    },
    discardResponses() {
      isDiscarding = true;
    },
    freeze() {
      thawed ??= Promise.withResolvers<void>();
    },
    resume() {
      thawed?.resolve();
      thawed = undefined;
    },
    refuse() {
      isRefusing = true;
      for (const socket of sockets) socket.destroy();
    },
    accept() {
      isRefusing = false;
    },
    cutAt(when, sent) {
      cut = { when, sent };
      const before = cuts;
      return {
        cuts: () => cuts - before,
        end: () => {
          cut = undefined;
        },
      };
    },
  };
}

/**
 * A client of PostgreSQL sends the text of a statement once for a connection, and then only its name (messages Parse and Bind of the
 * protocol).
 *
 * @returns a function that adds the texts of the statements that are named in what a client sends
 */
function createStatementReader(): (sent: string) => string {
  const texts = new Map<string, string>();
  return (sent) => {
    for (const [, name = '', text = ''] of sent.matchAll(/(penstock_[0-9a-f]{32})\0([^\0]+)\0/g))
      texts.set(name, text);
    const named = Array.from(sent.matchAll(/penstock_[0-9a-f]{32}/g), ([name]) => texts.get(name) ?? '');
    return [sent, ...named].join('\n');
  };
}
