/** One request's way through the bank: read it, do what it says, answer; and go wrong where a fault is due. */
import { type HeaderFields, headerFieldsFrom, headerValue } from '../pis/headers.ts';
import type { OperationName } from '../pis/operations.ts';
import { BankError, errorResponse } from './bank-error.ts';
import { type BankResponse, send, withHeaders } from './bank-response.ts';
import { checkDigest } from './digest.ts';
import type { FaultContext } from './fault-context.ts';
import { applyFault } from './fault-handlers.ts';
import type { FaultDecision } from './fault-queue.ts';
import { type FaultMoment, momentOf } from './faults.ts';
import type { PerformOperation } from './operation-context.ts';
import type { BankRoute } from './routes.ts';
import { checkSignature } from './signature.ts';

const products = [
  'sepa-credit-transfers',
  'instant-sepa-credit-transfers',
  'target-2-payments',
  'cross-border-credit-transfers',
];
const knownProducts: ReadonlySet<string> = new Set([
  ...products,
  ...products.map((name) => `pain.001-${name}`),
]);

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A request whose header has arrived. */
export interface ReceivedRequest {
  readonly route: BankRoute | BankError;
  readonly rawHeaders: readonly string[];
  readonly misfortune: FaultDecision;
  /** Reads the body; `undefined` if the sender goes away before its end. */
  read(): Promise<Buffer | undefined>;
  /** Called when the bank has done what was asked, or refused it, and the answer is about to go. */
  performed(): void;
  /** Whose seals are wanted, as PEM; `undefined` wants none. */
  readonly sealAuthority: string | undefined;
  readonly connection: Omit<FaultContext, 'answer'>;
}

/** Serves one visit. Resolves when the bank is done with it, which may be before the client is. */
export async function handleRequest(
  operations: Readonly<Record<OperationName, PerformOperation>>,
  visit: ReceivedRequest,
): Promise<void> {
  const { connection, misfortune } = visit;
  const headers = headerFieldsFrom(visit.rawHeaders);
  const told = errorResponse(new BankError(503, 'SERVICE_UNAVAILABLE', 'The bank was told to fail'), headers);

  if (await struck('before-reading', told)) return;
  const body = await visit.read();
  if (!body || (await struck('before-effect', told))) return;

  const answer = answerTo(operations, visit, headers, body);
  visit.performed();
  if (await struck('after-effect', answer)) return;
  send(connection.response, withRequestId(answer, headers));

  async function struck(moment: FaultMoment, proper: BankResponse): Promise<boolean> {
    const { delay, fault } = misfortune;
    if (delay?.moment === moment && !(await connection.wait(delay.ms))) return true;
    if (!fault || momentOf(fault) !== moment) return false;
    await applyFault(fault, { ...connection, answer: withRequestId(proper, headers) });
    return true;
  }
}

function answerTo(
  operations: Readonly<Record<OperationName, PerformOperation>>,
  { route, sealAuthority }: Pick<ReceivedRequest, 'route' | 'sealAuthority'>,
  headers: HeaderFields,
  body: Buffer,
): BankResponse {
  try {
    if (sealAuthority !== undefined) checkSignature(sealAuthority, headers, body);
    if (route instanceof BankError) throw route;
    checkRequestId(headers);
    checkDigest(headers, body);
    if (!knownProducts.has(route.product)) {
      const text = 'The addressed payment product is not supported by the ASPSP';
      throw new BankError(404, 'PRODUCT_UNKNOWN', text);
    }
    return operations[route.name]({ route, headers, body });
  } catch (error) {
    if (error instanceof BankError) return errorResponse(error, headers);
    throw error;
  }
}

function checkRequestId(headers: HeaderFields): void {
  const id = headerValue(headers, 'x-request-id');
  if (id !== undefined && uuid.test(id)) return;
  const text = id === undefined ? 'X-Request-ID is missing' : 'X-Request-ID is not a UUID';
  throw new BankError(400, 'FORMAT_ERROR', text, { path: 'X-Request-ID' });
}

/** Every answer carries the X-Request-ID of its request, refusals included. */
function withRequestId(answer: BankResponse, headers: HeaderFields): BankResponse {
  const id = headerValue(headers, 'x-request-id');
  return id === undefined ? answer : withHeaders(answer, [['X-Request-ID', id]]);
}
