/** The HTTP proxy between the gateway and a bank (`upstream.proxy`): which one, and a tunnel through it (CONNECT, RFC 9110 section 9.3.6). */

import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { getProxyForUrl } from 'proxy-from-env';
import type { ReadFile } from '../certificates/file-watcher.ts';
import type { UpstreamSettings } from '../config/schema.ts';
import { hostWithoutBrackets } from '../config/values.ts';

/** A proxy, and the value of `Proxy-Authorization` for it. */
export interface EgressProxy {
  readonly url: URL;
  readonly authorization: string | undefined;
}

/**
 * The proxy for an origin.
 *
 * @returns `undefined` if the gateway connects to the bank itself
 * @throws Error that names the setting or variable, if its value cannot be used
 */
export function egressProxyFor(
  origin: string,
  { proxy, proxyCredentialsFile }: Pick<UpstreamSettings, 'proxy' | 'proxyCredentialsFile'>,
  read: ReadFile,
): EgressProxy | undefined {
  const text = proxy === 'environment' ? getProxyForUrl(origin) : proxy;
  if (!text) return undefined;
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol))
    throw new Error('upstream.proxy: HTTPS_PROXY or HTTP_PROXY is not the URL of an HTTP proxy');
  const credentials =
    proxyCredentialsFile === null
      ? [url.username, url.password].map(decodeURIComponent).join(':')
      : read(proxyCredentialsFile).toString('utf8').trim();
  if (proxyCredentialsFile !== null && !credentials.includes(':'))
    throw new Error(`upstream.proxyCredentialsFile: ${proxyCredentialsFile} must contain user:password`);
  const authorization =
    credentials === ':' ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`;
  return { url, authorization };
}

/** The proxy has refused the tunnel, or is no HTTP proxy. Nothing was sent to the bank. */
export class TunnelError extends Error {
  readonly status: number | undefined;

  constructor(status: number | undefined) {
    super(`the proxy answered ${status} to CONNECT`);
    this.status = status;
  }
}

/**
 * Opens a tunnel. What is written before it is open waits; TLS to the bank can be started at once.
 *
 * @param target the bank, as `host:port`: the proxy looks up the name
 * @returns emits `connect` when the tunnel is open
 */
export const openTunnel = (proxy: EgressProxy, target: string): Duplex => new Tunnel(proxy, target);

class Tunnel extends Duplex {
  connecting = true;
  readonly #request: ClientRequest;
  #socket: Socket | undefined;
  /** Continues a write or the end that waits for the tunnel. */
  #onOpen: ((socket: Socket) => void) | undefined;
  #isReferenced = true;

  constructor({ url, authorization }: EgressProxy, target: string) {
    super({ autoDestroy: true });
    const request = url.protocol === 'https:' ? requestHttps : requestHttp;
    this.#request = request({
      host: hostWithoutBrackets(url.hostname),
      port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)),
      method: 'CONNECT',
      path: target,
      headers: { host: target, ...(authorization !== undefined && { 'proxy-authorization': authorization }) },
      agent: false,
    });
    this.#request.on('connect', (response, socket, head) => this.#open(response, socket, head));
    this.#request.on('response', ({ statusCode }) => this.#refuse(statusCode)); // a server that is no proxy
    this.#request.on('error', (error) => this.destroy(error));
    this.#request.end();
  }

  /** For `net.Socket`: the bytes that have arrived. */
  get bytesRead(): number {
    return this.#socket?.bytesRead ?? 0;
  }

  #refuse(status: number | undefined): void {
    this.destroy(new TunnelError(status));
  }

  #open({ statusCode }: IncomingMessage, socket: Socket, head: Buffer): void {
    socket.on('error', (error) => this.destroy(error)).on('close', () => this.destroy());
    this.#socket = socket;
    if (statusCode !== 200 || this.destroyed) {
      socket.destroy();
      this.#refuse(statusCode);
      return;
    }
    socket.setNoDelay(true).setKeepAlive(true, 1_000);
    if (!this.#isReferenced) socket.unref();
    if (head.length > 0) this.push(head);
    socket.on('data', (chunk) => {
      if (!this.push(chunk)) socket.pause();
    });
    socket.on('end', () => this.push(null));
    this.connecting = false;
    this.emit('connect');
    this.#onOpen?.(socket);
  }

  #whenOpen(use: (socket: Socket) => void): void {
    if (this.#socket && !this.connecting) use(this.#socket);
    else this.#onOpen = use;
  }

  override _read(): void {
    this.#socket?.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#whenOpen((socket) => socket.write(chunk, done));
  }

  override _final(done: () => void): void {
    this.#whenOpen((socket) => socket.end(done));
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#request.on('error', () => {}); // of its abortion
    this.#request.destroy();
    this.#socket?.destroy();
    done(error);
  }

  ref(): this {
    this.#isReferenced = true;
    this.#socket?.ref();
    return this;
  }

  unref(): this {
    this.#isReferenced = false;
    this.#socket?.unref();
    return this;
  }
}
