/** The server for the notifications of banks: its listener, opened only if `notifications.listen` is set. */

import { createBankNotificationListener } from './bank-notification-listener.ts';
import type { Config } from './config/schema.ts';
import { type ListenerCertificate, readListenerTls, watchListenerTls } from './http/listener-tls.ts';
import { openConfiguredServer } from './http/open-configured-server.ts';
import { receivingEnvironmentIds } from './notifications/bank-notification-modes.ts';
import type { RequestHandlers } from './request-handler.ts';
import type { Services } from './services.ts';

export interface BankNotificationServer {
  readonly certificate: ListenerCertificate;
  /** @returns the port; `undefined` without `notifications.listen` @throws Error that says what to change */
  open(): Promise<number | undefined>;
  drain(): void;
  /** Accepts no more connections, and closes when all received notifications are answered. */
  close(): Promise<void>;
}

export function createBankNotificationServer(
  { listen: { reusePort }, notifications: { listen } }: Config,
  services: Services,
  requestHandlers: RequestHandlers,
): BankNotificationServer {
  if (!listen) return noServer;
  const { telemetry, bankNotifications, currentConfig } = services;
  const identities = () => requestHandlers.current.identities.current();

  /** Accepts only tokens of environments that have `receive` now. */
  function verify(token: string) {
    const known = identities();
    if (!known || services.stateHeartbeat.problem() !== undefined) return 'unavailable';
    return bankNotifications.tokens.verify(token, receivingEnvironmentIds(currentConfig.value, known));
  }

  const { server, drain, close } = createBankNotificationListener(
    {
      verify,
      accept: bankNotifications.receiver.accept,
      isBusy: services.loadShedding.isBusy,
      environmentNameOf: (id) => identities()?.environmentNameOf(id) ?? '',
      metrics: telemetry.metrics,
    },
    readListenerTls(listen.tls),
  );
  return {
    certificate: watchListenerTls(listen.tls, server, telemetry, services.timeline, 'notification-listener'),
    open: () =>
      openConfiguredServer(server, 'notifications.listen', {
        host: listen.host,
        port: listen.port,
        reusePort,
      }),
    drain,
    close,
  };
}

const noServer: BankNotificationServer = {
  certificate: { certificates: () => [], refresh: async () => {} },
  open: async () => undefined,
  drain() {},
  close: async () => {},
};
