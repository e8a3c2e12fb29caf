/** The control endpoint: inspects the bank and injects faults, for curl and other programs. A real bank has no such API. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import type { SimulatedBank } from './bank.ts';
import { explanationOf } from './control-explanation.ts';
import { parseFaults } from './faults.ts';
import type { LoggedRequest } from './request-log.ts';
import { jsonResponse, sendResponse } from './simulated-response.ts';

const root = '/_bank';

/** Whether a request target belongs to the control endpoint. */
export const isControl = (url: string) => url === root || url.startsWith(`${root}/`);

/** Answers a call of the control endpoint. */
export async function answerControl(
  bank: SimulatedBank,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = (request.url ?? '').slice(root.length + 1);
  const call = `${request.method} ${path.startsWith('payments/') ? 'payments/{paymentId}' : path}`;
  const action = actions[call];
  if (!action)
    return sendResponse(response, jsonResponse(404, { error: `unknown call; GET ${root}/ lists all calls` }));

  try {
    const body = request.method === 'PUT' ? await json(request) : undefined;
    const result = action(bank, body, decodeURIComponent(path.slice('payments/'.length)));
    sendResponse(response, jsonResponse(200, result));
  } catch (error) {
    sendResponse(
      response,
      jsonResponse(400, { error: error instanceof Error ? error.message : 'unreadable body' }),
    );
  }
}

type ControlAction = (bank: SimulatedBank, body: unknown, paymentId: string) => unknown;

const actions: Readonly<Record<string, ControlAction>> = {
  'GET ': explanationOf,
  'DELETE ': (bank) => {
    bank.reset();
    return explanationOf(bank);
  },
  'GET requests': ({ requests }) => requests.map(requestView),
  'GET payments': ({ payments }) => payments,
  'PUT payments/{paymentId}': (bank, body, paymentId) => {
    const { transactionStatus: status } = objectOf(body);
    if (typeof status !== 'string' && status !== null) {
      throw new TypeError('send {"transactionStatus": "RJCT"}, or null to return to the status by time');
    }
    if (!bank.setStatus(paymentId, status ?? undefined)) throw new Error(`unknown payment ${paymentId}`);
    return bank.payments.find((payment) => payment.paymentId === paymentId);
  },
  'GET faults': faultsOf,
  'PUT faults': (bank, body) => {
    const faults = parseFaults(body);
    bank.clearFaults();
    for (const { fault, scope } of faults) bank.injectFault(fault, scope);
    return faultsOf(bank);
  },
  'DELETE faults': (bank) => {
    bank.clearFaults();
    return faultsOf(bank);
  },
  'GET notifications': notificationsOf,
  'PUT notifications': (bank, body) => {
    const { enabled } = objectOf(body);
    if (typeof enabled !== 'boolean') throw new TypeError('send {"enabled": true}, or false');
    bank.notifiesTpps = enabled;
    return notificationsOf(bank);
  },
  'GET clock': timeOf,
  'PUT clock': (bank, body) => {
    const { advanceMs } = objectOf(body);
    if (typeof advanceMs !== 'number' || !(advanceMs >= 0)) throw new TypeError('send {"advanceMs": 60000}');
    bank.clock.advance(advanceMs);
    return timeOf(bank);
  },
};

function faultsOf({ faults }: SimulatedBank) {
  return faults.map((one) => ({
    ...one,
    timesLeft: Number.isFinite(one.timesLeft) ? one.timesLeft : 'unlimited',
  }));
}

function notificationsOf({ notifiesTpps, notifications }: SimulatedBank) {
  return { enabled: notifiesTpps, sent: notifications };
}

function timeOf({ clock }: SimulatedBank) {
  return { now: new Date(clock.now()).toISOString() };
}

function requestView({ body, ...rest }: LoggedRequest) {
  return { ...rest, bodyBytes: body.length, body: body.toString('utf8') };
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}
