/** A browser of an operator, without pages: it keeps cookies and follows redirects. It does not know SameSite: Chromium tests that. */

import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { text } from 'node:stream/consumers';
import { within } from './within.ts';

export interface BrowserAnswer {
  /** Of the last request, after the redirects. */
  readonly url: string;
  readonly status: number;
  readonly text: string;
  readonly headers: IncomingMessage['headers'];
}

export interface OperatorBrowser {
  /** Sends one request with the cookies of its host. */
  send(method: string, url: string, options?: BrowserRequest): Promise<BrowserAnswer>;
  /** Opens a URL, and follows every redirect. */
  open(url: string): Promise<BrowserAnswer>;
  /** The cookies of a host, by name. */
  cookies(host: string): ReadonlyMap<string, string>;
  /** Every `Set-Cookie` that the browser received. */
  readonly received: readonly string[];
}

interface BrowserRequest {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

const maxRedirects = 15;

interface BrowserOptions {
  /** Trusted authorities in PEM format. */
  readonly ca?: string;
  /** The certificate of a client, as a proxy has one. */
  readonly certificate?: { readonly cert: string; readonly key: string };
}

export function createOperatorBrowser({ ca, certificate }: BrowserOptions = {}): OperatorBrowser {
  const jars = new Map<string, Map<string, string>>();
  const received: string[] = [];
  const jarOf = (host: string) => jars.get(host) ?? jars.set(host, new Map()).get(host) ?? new Map();

  function store(host: string, cookies: readonly string[]): void {
    for (const cookie of cookies) {
      received.push(cookie);
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      if (/Max-Age=0(;|$)/i.test(cookie) || /expires=Thu, 01 Jan 1970/i.test(cookie))
        jarOf(host).delete(name);
      else jarOf(host).set(name, value);
    }
  }

  async function send(
    method: string,
    url: string,
    { headers = {}, body }: BrowserRequest = {},
  ): Promise<BrowserAnswer> {
    const { hostname, protocol } = new URL(url);
    const cookie = Array.from(jarOf(hostname), ([name, value]) => `${name}=${value}`).join('; ');
    const content = body === undefined ? undefined : JSON.stringify(body);
    const options = {
      method,
      agent: false,
      headers: {
        ...(cookie !== '' && { Cookie: cookie }),
        ...(content !== undefined && {
          'Content-Type': 'application/json',
          'Content-Length': String(Buffer.byteLength(content)),
        }),
        ...headers,
      },
      ...(ca !== undefined && { ca }),
      ...certificate,
    };
    const { promise, resolve, reject } = Promise.withResolvers<BrowserAnswer>();
    const sent = (protocol === 'https:' ? requestHttps : requestHttp)(url, options, (response) => {
      store(hostname, response.headers['set-cookie'] ?? []);
      text(response).then((body) => {
        resolve({ url, status: response.statusCode ?? 0, text: body, headers: response.headers });
      }, reject);
    });
    sent.on('error', reject).end(content);
    return within(20_000, `an answer to ${method} ${url}`, promise);
  }

  return {
    send,
    async open(url) {
      let answer = await send('GET', url);
      for (let redirects = 0; answer.headers.location !== undefined; redirects++) {
        if (redirects === maxRedirects)
          throw new Error(`more than ${maxRedirects} redirects, to ${answer.url}`);
        answer = await send('GET', new URL(answer.headers.location, answer.url).href);
      }
      return answer;
    },
    cookies: jarOf,
    received,
  };
}
