/** The notifications of the bank about payments (Resource Status Notification Service, 1.3.11), while they are switched on. */

import { randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type HeaderFields, headerValue } from '../pis/headers.ts';
import type { Payment } from './payment-lifecycle.ts';
import type { Payments } from './payments.ts';

/** An attempt to notify a TPP. */
export interface SentNotification {
  readonly uri: string;
  readonly body: Readonly<Record<string, string>>;
  /** The status of the response; `undefined` while there is none. */
  readonly status: number | undefined;
  /** Why there is no response. */
  readonly error: string | undefined;
}

export interface Notifications {
  isEnabled: boolean;
  /** All attempts, in order. */
  readonly sent: readonly SentNotification[];
  /**
   * Subscribes a TPP to a payment, if a request asks for it. A later request replaces its URI.
   *
   * @returns the fields of the response
   */
  subscribe(payment: Payment, headers: HeaderFields): HeaderFields;
  /** Looks for changes now, such as after the clock was advanced. */
  check(): void;
  /** Ends all subscriptions and attempts. */
  stop(): void;
  /** As `stop`, and removes the attempts from the list. */
  clear(): void;
}

type Content = 'SCA' | 'PROCESS' | 'LAST';

interface Subscription {
  readonly paymentId: string;
  uri: URL;
  contents: readonly Content[];
  status: string;
  /** By authorisation. */
  readonly scaStatuses: Map<string, string>;
  /** The notifications of one payment are sent one after the other. */
  sending: Promise<void>;
}

interface NotificationsDependencies {
  readonly payments: Pick<Payments, 'withId' | 'statusOf' | 'scaStatusOf'>;
  /** The CA certificates of TPPs, as PEM, in place of those of Node. */
  readonly ca: string | undefined;
  /** Called after each attempt. */
  readonly onSent: () => void;
}

/** How often the bank looks for changes that time has brought. Milliseconds. */
const checkMs = 100;
const timeoutMs = 5_000;
const attempts = 3;
const retryMs = 1_000;

export function createNotificationSender({ payments, ca, onSent }: NotificationsDependencies): Notifications {
  const subscriptions = new Map<string, Subscription>();
  let sent: SentNotification[] = [];
  let timer: NodeJS.Timeout | undefined;
  let ended = new AbortController();

  function check(): void {
    for (const subscription of subscriptions.values()) {
      const payment = payments.withId(subscription.paymentId);
      if (payment) notifyOf(subscription, payment);
    }
    if (subscriptions.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  }

  function notifyOf(subscription: Subscription, payment: Payment): void {
    const { paymentId, contents, scaStatuses } = subscription;
    for (const authorisation of authorisationsOf(payment)) {
      const scaStatus = payments.scaStatusOf(payment, authorisation);
      const known = scaStatuses.get(authorisation.id);
      scaStatuses.set(authorisation.id, scaStatus);
      if (known !== scaStatus && contents.includes('SCA'))
        queue(subscription, { paymentId, authorisationId: authorisation.id, scaStatus });
    }
    const transactionStatus = payments.statusOf(payment);
    if (transactionStatus === subscription.status) return;
    subscription.status = transactionStatus;
    const isLast = lastStatuses.has(transactionStatus);
    if (contents.includes('PROCESS') || (isLast && contents.includes('LAST')))
      queue(subscription, { paymentId, transactionStatus });
    if (isLast) subscriptions.delete(paymentId);
  }

  function queue(subscription: Subscription, body: SentNotification['body']): void {
    const { uri, sending } = subscription;
    const { signal } = ended;
    subscription.sending = sending.then(() => deliver(uri, body, signal));
  }

  async function deliver(uri: URL, body: SentNotification['body'], signal: AbortSignal): Promise<void> {
    const requestId = randomUUID();
    for (let attempt = 1; attempt <= attempts && !signal.aborted; attempt++) {
      const result = await post(uri, body, requestId, ca, signal);
      sent.push({ uri: uri.href, body, ...result });
      onSent();
      if (result.status !== undefined && result.status < 300) return;
      if (attempt < attempts) await pause(retryMs, signal);
    }
  }

  const notifications: Notifications = {
    isEnabled: false,
    get sent() {
      return sent;
    },
    subscribe(payment, headers) {
      const text = headerValue(headers, 'tpp-notification-uri');
      if (!notifications.isEnabled || text === undefined) return [];
      const contents = contentsOf(headerValue(headers, 'tpp-notification-content-preferred'));
      const uri = URL.canParse(text) ? new URL(text) : undefined;
      if (!uri || !/^https?:$/.test(uri.protocol)) return [['ASPSP-Notification-Support', 'false']];
      const known = subscriptions.get(payment.id);
      const status = payments.statusOf(payment);
      const scaStatuses = new Map(
        authorisationsOf(payment).map((authorisation) => {
          return [authorisation.id, payments.scaStatusOf(payment, authorisation)] as const;
        }),
      );
      if (known) Object.assign(known, { uri, contents });
      else
        subscriptions.set(payment.id, {
          paymentId: payment.id,
          uri,
          contents,
          status,
          scaStatuses,
          sending: Promise.resolve(),
        });
      timer ??= setInterval(check, checkMs).unref();
      return [
        ['ASPSP-Notification-Support', 'true'],
        ['ASPSP-Notification-Content', `status=${contents.join(',')}`],
      ];
    },
    check,
    stop() {
      ended.abort();
      ended = new AbortController();
      subscriptions.clear();
      check();
    },
    clear() {
      notifications.stop();
      sent = [];
    },
  };
  return notifications;
}

const lastStatuses: ReadonlySet<string> = new Set(['ACCC', 'RJCT', 'CANC']);

/** What the TPP prefers; every change of the status if it has no valid preference. */
function contentsOf(preferred: string | undefined): readonly Content[] {
  const names = /^\s*status\s*=(.*)$/i.exec(preferred ?? '')?.[1]?.split(',') ?? [];
  const wanted = names.map((name) => name.trim().toUpperCase());
  const known = (['SCA', 'PROCESS', 'LAST'] as const).filter((name) => wanted.includes(name));
  return known.length > 0 ? known : ['PROCESS'];
}

const authorisationsOf = ({ authorisations, cancellations }: Payment) => [
  ...authorisations,
  ...cancellations,
];

/** Never rejects. */
function post(
  uri: URL,
  body: SentNotification['body'],
  requestId: string,
  ca: string | undefined,
  signal: AbortSignal,
): Promise<Pick<SentNotification, 'status' | 'error'>> {
  const text = JSON.stringify(body);
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
    'X-Request-ID': requestId,
  };
  const options = { method: 'POST', headers, signal, timeout: timeoutMs, agent: false };
  return new Promise((resolve) => {
    const fail = (cause: Error) => resolve({ status: undefined, error: cause.message });
    const request =
      uri.protocol === 'https:'
        ? httpsRequest(uri, { ...options, ...(ca !== undefined && { ca }) })
        : httpRequest(uri, options);
    request
      .on('response', (response) => {
        response.resume();
        resolve({ status: response.statusCode, error: undefined });
      })
      .on('timeout', () => request.destroy(new Error(`no response within ${timeoutMs} ms`)))
      .on('error', fail)
      .end(text);
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms).unref();
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
