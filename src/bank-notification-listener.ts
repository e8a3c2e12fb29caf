/** The listener for the notifications of banks: POST only, to a URI with a valid token. It discards the body. */

import { randomUUID } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { TlsOptions } from 'node:tls';
import { createBodyMemoryBudget } from './http/body-memory-budget.ts';
import { createListener, defaultListenerLimits, type Listener } from './http/listener.ts';
import { readBody, refuseOversizedBody } from './http/read-body.ts';
import { RequestHead } from './http/request-head.ts';
import { writeError } from './http/write-error.ts';
import { writeCompleteResponse } from './http/write-response.ts';
import type { VerifiedToken } from './notifications/bank-notification-tokens.ts';
import { emptyBody } from './request/body-buffer.ts';
import { asGatewayError, GatewayError } from './request/errors.ts';
import type { Metrics } from './telemetry/metrics.ts';

interface BankNotificationListenerDependencies {
  /** @returns `undefined` if the token is not valid; `unavailable` if it cannot be verified now */
  readonly verify: (token: string) => VerifiedToken | 'unavailable' | undefined;
  /** Queues a notification. @returns `false` if the queue is full */
  readonly accept: (id: string) => boolean;
  /** Whether the gateway is overloaded. */
  readonly isBusy: () => boolean;
  /** The name of an environment. */
  readonly environmentNameOf: (environmentId: string) => string;
  readonly metrics: Pick<Metrics, 'increment'>;
}

/** The limit of one notification; real ones are much smaller. */
const maxBodyBytes = 64 * 1024;
/** The limit of all notifications that are being received. */
const maxBodyMemoryBytes = 4 * 1024 * 1024;
/** A bank needs few connections. Connections of strangers must not exhaust memory and file descriptors, which payments need. */
const maxConnections = 256;
/** A notification is small. An idle connection is kept as long as those of TPPs: proxies reuse one for about a minute. Milliseconds. */
const timeouts = { headersTimeout: 5_000, requestTimeout: 10_000 };

/** @param tls makes the listener speak TLS @returns a listener that is not open yet */
export function createBankNotificationListener(
  dependencies: BankNotificationListenerDependencies,
  tls?: TlsOptions,
): Listener {
  const { metrics } = dependencies;
  const memory = createBodyMemoryBudget(maxBodyMemoryBytes);
  const count = (result: NotificationResult, environment = '') =>
    metrics.increment('penstock_bank_notifications_total', { environment, result });

  const serve: RequestListener = (incoming, outgoing) => {
    const head = new RequestHead(incoming.rawHeaders, incoming.httpVersion);
    const requestId = head.requestId ?? randomUUID();
    let environment: string | undefined;
    receive()
      .then(() => {
        count('accepted', environment);
        writeCompleteResponse(outgoing, 200, [['X-Request-ID', requestId]], emptyBody);
      })
      .catch((thrown: unknown) => {
        const error = asGatewayError(thrown);
        count(resultOf(error), environment);
        refuse(incoming, outgoing, error, requestId);
      });

    async function receive(): Promise<void> {
      if (head.error) throw closing(outgoing, head.error);
      const token = verifiedToken(dependencies, incoming);
      environment = dependencies.environmentNameOf(token.environmentId);
      if (dependencies.isBusy()) throw overloaded();
      refuseOversizedBody(head.contentLength, maxBodyBytes);
      if (head.expect !== undefined && incoming.httpVersion === '1.1') outgoing.writeContinue();
      if (head.announcesBody) await readBody({ body: emptyBody }, incoming, maxBodyBytes, memory);
      if (!dependencies.accept(token.id)) throw overloaded();
    }
  };

  const limits = { ...defaultListenerLimits, ...timeouts, maxConnections };
  const listener = createListener(serve, () => count('refused'), { limits, tls });
  listener.server.on('drop', () => count('overloaded'));
  return listener;
}

type NotificationResult = 'accepted' | 'unknown' | 'too_large' | 'overloaded' | 'refused';

function resultOf({ code }: GatewayError): NotificationResult {
  if (code === 'PATH_UNKNOWN') return 'unknown';
  if (code === 'BODY_TOO_LARGE') return 'too_large';
  return code === 'OVERLOADED' || code === 'STATE_UNAVAILABLE' ? 'overloaded' : 'refused';
}

/** @throws GatewayError METHOD_NOT_ALLOWED, PATH_UNKNOWN, or STATE_UNAVAILABLE */
function verifiedToken(
  { verify }: Pick<BankNotificationListenerDependencies, 'verify'>,
  { method, url = '' }: IncomingMessage,
): VerifiedToken {
  if (method !== 'POST')
    throw new GatewayError('METHOD_NOT_ALLOWED', 'Only POST is allowed here.', {
      headers: [['Allow', 'POST']],
    });
  const [path = ''] = url.split('?', 1);
  const verified = verify(path.slice(path.lastIndexOf('/') + 1)); // a proxy may have removed the path of the public URL, or not
  if (verified === 'unavailable')
    throw new GatewayError(
      'STATE_UNAVAILABLE',
      'The gateway cannot store the notification at the moment; send it again.',
    );
  if (!verified)
    throw new GatewayError('PATH_UNKNOWN', 'The gateway has not issued this URI, or it has expired.');
  return verified;
}

const overloaded = () =>
  new GatewayError('OVERLOADED', 'The gateway is overloaded; send the notification again.');

function closing(outgoing: ServerResponse, error: GatewayError): GatewayError {
  outgoing.shouldKeepAlive = false;
  return error;
}

function refuse(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  error: GatewayError,
  requestId: string,
): void {
  try {
    writeError(incoming, outgoing, error, { requestId, accept: undefined });
  } catch {
    outgoing.destroy();
  }
}
