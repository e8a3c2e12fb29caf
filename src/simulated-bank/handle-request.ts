/** Handles one request: reads it, executes it, responds; and applies its faults. */
import { randomUUID } from 'node:crypto';
import { type HeaderFields, headerFieldsFrom, headerValue } from '../pis/headers.ts';
import type { OperationName } from '../pis/operations.ts';
import { BankError, bankErrorResponse } from './bank-error.ts';
import { assertDigest } from './digest.ts';
import type { FaultContext } from './fault-context.ts';
import { applyFault } from './fault-handlers.ts';
import type { FaultsOfRequest } from './fault-queue.ts';
import { type FaultMoment, momentOf } from './faults.ts';
import type { PerformOperation } from './operation-context.ts';
import type { BankProfile } from './profile.ts';
import type { AssertRequirements } from './requirements.ts';
import type { BankRoute } from './routes.ts';
import { assertSignature } from './signature.ts';
import { type SimulatedResponse, sendResponse } from './simulated-response.ts';

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
  readonly faults: FaultsOfRequest;
  /** Reads the body; `undefined` if the client disconnects before its end. */
  read(): Promise<Buffer | undefined>;
  /** Called after the bank has executed or refused the request, before it responds. */
  onPerformed(): void;
  /** The request target after `?`, unchanged. */
  readonly query: string;
  readonly connection: Omit<FaultContext, 'bankResponse'>;
}

/** One bank: what it executes, and under which conditions. */
export interface BankRules {
  readonly operations: Readonly<Record<OperationName, PerformOperation>>;
  readonly profile: BankProfile;
  readonly assertRequirements: AssertRequirements;
  /** The CA of accepted QSealCs, as PEM; `undefined` requires no signature. */
  readonly sealAuthority: string | undefined;
}

/** Resolves when the bank is done with the request, which may be before the client is. */
export async function handleRequest(rules: BankRules, received: ReceivedRequest): Promise<void> {
  const { connection, faults } = received;
  const headers = headerFieldsFrom(received.rawHeaders);
  const unavailable = bankErrorResponse(
    new BankError(503, 'SERVICE_UNAVAILABLE', 'Fault injection: internal error of the bank'),
    headers,
  );

  if (await applyFaultAt('before-reading', unavailable)) return;
  const body = await received.read();
  if (!body || (await applyFaultAt('before-effect', unavailable))) return;

  const response = execute(rules, received, headers, body);
  received.onPerformed();
  if (await applyFaultAt('after-effect', response)) return;
  sendResponse(connection.response, completed(rules.profile, response, headers));

  async function applyFaultAt(moment: FaultMoment, response: SimulatedResponse): Promise<boolean> {
    const { delay, fault } = faults;
    if (delay?.moment === moment && !(await connection.wait(delay.ms))) return true;
    if (!fault || momentOf(fault) !== moment) return false;
    await applyFault(fault, { ...connection, bankResponse: completed(rules.profile, response, headers) });
    return true;
  }
}

function execute(
  { operations, profile, assertRequirements, sealAuthority }: BankRules,
  { route, query }: Pick<ReceivedRequest, 'route' | 'query'>,
  headers: HeaderFields,
  body: Buffer,
): SimulatedResponse {
  try {
    if (sealAuthority !== undefined) assertSignature(sealAuthority, headers, body);
    if (route instanceof BankError) throw route;
    assertRequirements(route, query, headers);
    checkRequestId(headers);
    assertDigest(headers, body);
    if (!knownProducts.has(route.product) && route.product !== profile.links.location.product) {
      const text = 'The addressed payment product is not supported by the ASPSP';
      throw new BankError(404, 'PRODUCT_UNKNOWN', text);
    }
    return operations[route.name]({ route, headers, body });
  } catch (error) {
    if (error instanceof BankError) return bankErrorResponse(error, headers);
    throw error;
  }
}

function checkRequestId(headers: HeaderFields): void {
  const id = headerValue(headers, 'x-request-id');
  if (id !== undefined && uuid.test(id)) return;
  const text = id === undefined ? 'X-Request-ID is missing' : 'X-Request-ID is not a UUID';
  throw new BankError(400, 'FORMAT_ERROR', text, { path: 'X-Request-ID' });
}

/** Adds the X-Request-ID that this bank returns, also to errors, and its media type of JSON. */
function completed(
  { answers }: BankProfile,
  { status, headers: fields, body }: SimulatedResponse,
  headers: HeaderFields,
): SimulatedResponse {
  const same = headerValue(headers, 'x-request-id');
  const id = { same, own: randomUUID(), none: undefined }[answers.requestId];
  const typed = fields.map((field) =>
    field[1] === 'application/json' ? ([field[0], answers.json] as const) : field,
  );
  return { status, headers: id === undefined ? typed : [['X-Request-ID', id], ...typed], body };
}
