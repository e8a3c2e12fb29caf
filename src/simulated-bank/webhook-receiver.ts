/** The demo's TPP: receives webhooks, verifies their signatures, and reports them. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

/** A webhook whose signature is that of the gateway. */
export interface ReceivedWebhook {
  readonly id: string;
  readonly paymentId: string;
  /** The JSON text. */
  readonly body: string;
}

export interface WebhookReceiver {
  /** The secret of the client, for its `secretFile`; another one for each receiver. */
  readonly secret: string;
  /** Listens on loopback; port 0 takes a free one. @returns the URL for `TPP-Notification-URI` */
  start(port: number): Promise<string>;
  stop(): Promise<void>;
  /** Waits for a webhook about a payment, which may have arrived already. @throws Error after `withinMs` */
  webhookFor(paymentId: string, withinMs?: number): Promise<ReceivedWebhook>;
}

const host = '127.0.0.1';
/** Where it answers 503 to each webhook, like a TPP whose system is broken. */
export const failingPath = '/failing';
/** A webhook has less than a kilobyte. */
const maxBodyBytes = 10_000;

interface ReceiverOptions {
  /** Called once for each message; a repeat has the id of an earlier one. */
  readonly onWebhook?: (webhook: ReceivedWebhook) => void;
  readonly onRefused?: (why: string) => void;
}

export function createWebhookReceiver({
  onWebhook = () => {},
  onRefused = () => {},
}: ReceiverOptions = {}): WebhookReceiver {
  const key = randomBytes(32);
  const received = new Map<string, ReceivedWebhook>();
  const waiting = new Set<() => void>();

  const server = createServer((request, response) => {
    receive(request, response).catch(() => response.destroy()); // the gateway sends it again
  });

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isSmall = Number(request.headers['content-length']) <= maxBodyBytes;
    const body = isSmall ? await text(request) : '';
    if (!isSmall || !isSigned(key, request.headers, body)) {
      onRefused('its signature is missing, wrong or too old');
      response.writeHead(401, { Connection: 'close' }).end();
      return;
    }
    if (request.url === failingPath) {
      response.writeHead(503).end();
      return;
    }
    response.writeHead(204).end();
    const id = String(request.headers['webhook-id']);
    if (received.has(id)) return;
    const { paymentId }: { readonly paymentId: string } = JSON.parse(body);
    const webhook = { id, paymentId, body };
    received.set(id, webhook);
    onWebhook(webhook);
    for (const check of [...waiting]) check();
  }

  return {
    secret: `whsec_${key.toString('base64')}`,
    async start(port) {
      server.listen(port, host);
      await once(server, 'listening');
      const address = server.address();
      return `http://${host}:${typeof address === 'object' ? address?.port : port}/webhooks`;
    },
    async stop() {
      server.closeAllConnections();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
    webhookFor(paymentId, withinMs = 10_000) {
      const { promise, resolve, reject } = Promise.withResolvers<ReceivedWebhook>();
      const check = () => {
        const found = [...received.values()].find((webhook) => webhook.paymentId === paymentId);
        if (found) resolve(found);
      };
      const timer = setTimeout(
        () => reject(new Error(`no webhook about ${paymentId} within ${withinMs} ms`)),
        withinMs,
      );
      waiting.add(check);
      check();
      return promise.finally(() => {
        clearTimeout(timer);
        waiting.delete(check);
      });
    },
  };
}

/** As docs/callers/webhooks.md describes it. */
function isSigned(key: Buffer, headers: IncomingHttpHeaders, body: string): boolean {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
    String(headers[name]),
  );
  if (!(Math.abs(Date.now() / 1_000 - Number(timestamp)) < 300)) return false;
  const digest = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  const expected = Buffer.from(`v1,${digest}`);
  return (signatures ?? '').split(' ').some((signature) => {
    const presented = Buffer.from(signature);
    return presented.length === expected.length && timingSafeEqual(presented, expected);
  });
}
