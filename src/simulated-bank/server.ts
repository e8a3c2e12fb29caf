/** Creates a simulated bank. Start reading here, then `handle-request.ts`. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BankOptions, SimulatedBank } from './bank.ts';
import { BankError } from './bank-error.ts';
import { createBankClock } from './clock.ts';
import { createConditionWaiter } from './condition-waiter.ts';
import { answerControl, isControl } from './control.ts';
import { createFaultQueue } from './fault-queue.ts';
import { handleRequest } from './handle-request.ts';
import { createLinks } from './links.ts';
import { type BankConnection, createBankListener } from './listener.ts';
import { createNotificationSender } from './notifications.ts';
import { createOperations } from './operations.ts';
import { defaultTimings } from './payment-lifecycle.ts';
import { createPayments } from './payments.ts';
import { createRequestLog } from './request-log.ts';
import { routeOf } from './routes.ts';

/** In a test: `const bank = createSimulatedBank(); await bank.start(); t.after(bank.stop);` */
export function createSimulatedBank(options: BankOptions = {}): SimulatedBank {
  const { name = 'bank', basePath = '', segment = 'berlingroup', clock = createBankClock() } = options;
  const prefix = ['', ...segment.split('/').filter((part) => part !== '')].join('/');
  const before = {
    absolute: () => `${options.publicOrigin ?? listener.origin()}${basePath}${prefix}`,
    relative: () => `${basePath}${prefix}`,
    'relative-without-segment': () => basePath,
    'relative-without-base': () => '',
  }[options.links ?? 'absolute'];

  const conditions = createConditionWaiter();
  const log = createRequestLog(conditions.notify);
  const faults = createFaultQueue();
  const payments = createPayments(name, clock, { ...defaultTimings, ...options.timings });
  const notifications = createNotificationSender({
    payments,
    ca: options.notificationAuthority,
    onSent: conditions.notify,
  });
  const links = createLinks(before, name);
  const operations = createOperations({ payments, clock, links, notifications });
  const listener = createBankListener(receive, options.tls);

  async function receive(request: IncomingMessage, response: ServerResponse, connection: BankConnection) {
    const { method = '', url = '', rawHeaders } = request;
    if (isControl(url)) return answerControl(bank, request, response);

    const route = routeOf(`${basePath}${prefix}/v1`, method, url);
    const operation = route instanceof BankError ? undefined : route.name;
    const taken = faults.take(operation);
    const fault = taken.fault?.name ?? (taken.delay && 'latency');
    const read = log.arrived(request, { connection: connection.number, operation, fault });
    response.once('close', conditions.notify);
    const { sealAuthority } = options;
    const received = {
      route,
      rawHeaders,
      faults: taken,
      read,
      onPerformed: conditions.notify,
      sealAuthority,
    };
    return handleRequest(operations, { ...received, connection: { ...connection, response } });
  }

  const bank: SimulatedBank = {
    name,
    get baseUrl() {
      return `${listener.origin()}${basePath}`;
    },
    get requests() {
      return log.entries();
    },
    get payments() {
      return payments.views();
    },
    get connections() {
      return listener.connections();
    },
    get malformed() {
      return listener.malformed();
    },
    get faults() {
      return faults.pending();
    },
    clock,
    get notifications() {
      return notifications.sent;
    },
    get notifiesTpps() {
      return notifications.isEnabled;
    },
    set notifiesTpps(isEnabled) {
      notifications.isEnabled = isEnabled;
    },
    start: async (port = 0, host = '127.0.0.1') => {
      await listener.start(port, host);
      return bank.baseUrl;
    },
    stop: () => {
      notifications.stop();
      return listener.stop();
    },
    injectFault: faults.add,
    clearFaults: faults.clear,
    endDelays: listener.endDelays,
    setStatus(paymentId, status) {
      const isKnown = payments.force(paymentId, status);
      notifications.check();
      return isKnown;
    },
    nextPaymentId: payments.nextId,
    waitUntil: conditions.waitUntil,
    reset: () => {
      log.clear();
      payments.clear();
      faults.clear();
      notifications.clear();
    },
  };
  return bank;
}
