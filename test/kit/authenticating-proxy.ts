/** A proxy in front of the admin listener that has authenticated a person and says so in headers, as oauth2-proxy does. */

import { createServer, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { listen } from './ports.ts';
import type { TestScope } from './test-scope.ts';

export interface AuthenticatingProxy {
  readonly url: string;
  /** The fields that the proxy adds to each request. */
  fields: readonly (readonly [name: string, value: string])[];
}

interface ProxyOptions {
  /** Where its connections come from. */
  readonly localAddress?: string;
  readonly certificate?: { readonly cert: string; readonly key: string };
  readonly ca?: string;
  /** Whether it passes on the client's own fields of the same names, which a correct proxy removes. */
  readonly keepsForeignFields?: boolean;
}

/** Closed when the test ends. */
export async function startAuthenticatingProxy(
  scope: TestScope,
  target: string,
  { localAddress, certificate, ca, keepsForeignFields = false }: ProxyOptions = {},
): Promise<AuthenticatingProxy> {
  const send = target.startsWith('https:') ? requestHttps : requestHttp;
  const server = createServer((incoming, response) => {
    const own = new Set(proxy.fields.map(([name]) => name.toLowerCase()));
    const pairs = incoming.rawHeaders.flatMap((name, index) =>
      index % 2 === 0 ? [[name, incoming.rawHeaders[index + 1] ?? ''] as const] : [],
    );
    const passed = pairs.filter(([name]) => keepsForeignFields || !own.has(name.toLowerCase()));
    const forwarded = ['X-Forwarded-For', incoming.socket.remoteAddress ?? ''] as const;
    const outgoing = send(new URL(incoming.url ?? '', target), {
      method: incoming.method,
      headers: [...passed, forwarded, ...proxy.fields].flat(),
      agent: false,
      ...(localAddress !== undefined && { localAddress }),
      ...(ca !== undefined && { ca }),
      ...certificate,
    });
    outgoing.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    incoming.pipe(outgoing);
  });
  const proxy: AuthenticatingProxy = { url: `http://127.0.0.1:${await listen(server)}`, fields: [] };
  scope.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return proxy;
}
