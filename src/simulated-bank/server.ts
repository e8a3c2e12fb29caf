/** Creates a simulated bank. Start reading here, then `handle-request.ts`. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { answerApproval, approvalPath, isApproval, isLoopback } from './approval-page.ts';
import type { BankOptions, SimulatedBank } from './bank.ts';
import { BankError } from './bank-error.ts';
import { createBankClock } from './clock.ts';
import { createConditionWaiter } from './condition-waiter.ts';
import { answerControl, isControl } from './control.ts';
import { createFaultQueue } from './fault-queue.ts';
import { handleRequest } from './handle-request.ts';
import { createLinks, linksBefore } from './links.ts';
import { type BankConnection, createBankListener } from './listener.ts';
import { createNotificationSender } from './notifications.ts';
import { createOperations } from './operations.ts';
import { defaultTimings, type Payment } from './payment-lifecycle.ts';
import { createPayments } from './payments.ts';
import { type BankProfile, pathBefore, profileSchema } from './profile.ts';
import { createRequestLog } from './request-log.ts';
import { createRequirements } from './requirements.ts';
import { routeOf } from './routes.ts';

/** In a test: `const bank = createSimulatedBank(); await bank.start(); t.after(bank.stop);` */
export function createSimulatedBank(options: BankOptions = {}): SimulatedBank {
  const { name = 'bank', clock = createBankClock(), sealAuthority } = options;
  const profile = profileOf(options);
  const { basePath } = profile;

  /** No browser has the certificate that a bank may demand of its clients. */
  const offersPage = options.approvalPage === true && options.tls?.requestCert !== true;
  const timings = { ...defaultTimings, ...options.timings };
  const conditions = createConditionWaiter();
  const log = createRequestLog(conditions.notify);
  const faults = createFaultQueue();
  const payments = createPayments(profile, name, clock, timings);
  const notifications = createNotificationSender({
    payments,
    ca: options.notificationAuthority,
    onSent: conditions.notify,
  });
  const links = createLinks(profile, () => options.publicOrigin ?? listener.origin(), name);
  const rules = {
    operations: createOperations({ profile, payments, clock, links, notifications, approvalUrl }),
    profile,
    assertRequirements: createRequirements(profile, links, clock),
    sealAuthority,
  };
  const listener = createBankListener(receive, options.tls);

  function approvalUrl(payment: Pick<Payment, 'id'>, authorisationId: string): string | undefined {
    const origin = listener.origin();
    const isUsed = offersPage && profile.links.scaRedirect === undefined;
    if (!isUsed || !isLoopback(new URL(origin).hostname)) return undefined;
    return origin + approvalPath(payment, authorisationId);
  }

  async function receive(request: IncomingMessage, response: ServerResponse, connection: BankConnection) {
    const { method = '', url = '', rawHeaders } = request;
    if (offersPage && isApproval(url)) {
      const { authorisedAfterMs } = timings;
      const shared = { bankName: name, origin: listener.origin(), payments, clock, notifications };
      return answerApproval({ ...shared, authorisedAfterMs }, request, response);
    }
    if (isControl(url)) return answerControl(bank, request, response);

    const route = routeOf((of) => pathBefore(profile, of), method, url);
    const operation = route instanceof BankError ? undefined : route.name;
    const taken = faults.take(operation);
    const fault = taken.fault?.name ?? (taken.delay && 'latency');
    const read = log.arrived(request, { connection: connection.number, operation, fault });
    response.once('close', conditions.notify);
    const query = url.replace(/^[^?]*\??/s, '');
    const received = { route, query, rawHeaders, faults: taken, read, onPerformed: conditions.notify };
    return handleRequest(rules, { ...received, connection: { ...connection, response } });
  }

  const bank: SimulatedBank = {
    name,
    get baseUrl() {
      return `${listener.origin()}${basePath}`;
    },
    path: pathBefore(profile, 'initiatePayment'),
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

function profileOf({ profile: given = {}, basePath, segment, links }: BankOptions): BankProfile {
  const profile = profileSchema.parse({
    ...given,
    ...(basePath !== undefined && { basePath }),
    ...(segment !== undefined && {
      segment: segment
        .split('/')
        .filter((part) => part !== '')
        .join('/'),
    }),
  });
  if (links === undefined) return profile;
  return { ...profile, links: { ...profile.links, before: linksBefore(links, profile.basePath) } };
}
