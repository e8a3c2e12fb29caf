/** A listener with its own limits and no application. */

import type { RequestListener } from 'node:http';
import type { TestContext } from 'node:test';
import {
  createListener,
  type defaultListenerLimits,
  type Listener,
  openServer,
} from '../../src/http/listener.ts';

/** Short and small, so that no test waits long or sends much. */
const shortLimits = {
  headersTimeout: 150,
  requestTimeout: 300,
  connectionsCheckingInterval: 20,
  keepAliveTimeout: 5_000,
  maxHeaderSize: 16_384,
  writeTimeout: 100,
  maxUnreadBytes: 64 * 1024 * 1024,
  maxConnections: 100,
};

export interface PlainListener {
  readonly port: number;
  readonly listener: Listener;
  /** Codes of what the listener itself has refused. */
  readonly refusals: readonly string[];
}

/** Starts a listener; closed when the test ends. @param limits those that differ from the short ones */
export async function startPlainListener(
  t: TestContext,
  serve: RequestListener,
  limits: Partial<typeof defaultListenerLimits> = {},
): Promise<PlainListener> {
  const refusals: string[] = [];
  const refused = ({ code }: { readonly code: string }) => void refusals.push(code);
  const listener = createListener(serve, refused, { limits: { ...shortLimits, ...limits } });
  const port = await openServer(listener.server, { host: '127.0.0.1', port: 0 });
  t.after(() => {
    listener.server.closeAllConnections();
    return listener.close();
  });
  return { port, listener, refusals };
}
