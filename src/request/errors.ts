/** The table of all errors that the gateway itself returns, in the order of the pipeline. */

import type { HeaderFields } from '../pis/headers.ts';
import type { Lane, OperationName } from '../pis/operations.ts';

export interface ErrorDefinition {
  /** HTTP status of the response. */
  readonly status: number;
  /** Who caused it; decides about the log level. */
  readonly origin: 'tpp' | 'gateway' | 'aspsp';
  /** Message code of the Berlin Group's error body. */
  readonly tppCode: string;
  /** Whether the bank can have received the request. Decides about retries and the ledger entry. */
  readonly reachedBank: 'no' | 'maybe';
  /** Error type of `Proxy-Status` (RFC 9209 section 2.3), unless the error has a more specific one. */
  readonly proxyError: string;
  /** `Retry-After`, unless the error has its own. */
  readonly retryAfterSeconds?: number;
}

const refused = { origin: 'tpp', reachedBank: 'no', proxyError: 'http_request_error' } as const;
const denied = { ...refused, proxyError: 'http_request_denied' } as const;
const busy = {
  status: 503,
  origin: 'gateway',
  tppCode: 'SERVICE_UNAVAILABLE',
  reachedBank: 'no',
  proxyError: 'connection_limit_reached',
  retryAfterSeconds: 1,
} as const;

export const errorTable = {
  PATH_MALFORMED: { ...refused, status: 400, tppCode: 'FORMAT_ERROR' },
  HEADER_MALFORMED: { ...refused, status: 400, tppCode: 'FORMAT_ERROR' },
  REQUEST_ID_INVALID: { ...refused, status: 400, tppCode: 'FORMAT_ERROR' },
  BODY_UNEXPECTED: { ...refused, status: 400, tppCode: 'FORMAT_ERROR' },
  ENVIRONMENT_UNKNOWN: { ...refused, status: 400, tppCode: 'FORMAT_ERROR' },
  PATH_UNKNOWN: { ...refused, status: 404, tppCode: 'RESOURCE_UNKNOWN' },
  PRODUCT_UNKNOWN: { ...refused, status: 404, tppCode: 'PRODUCT_UNKNOWN' },
  PAYMENT_UNKNOWN: { ...refused, status: 404, tppCode: 'RESOURCE_UNKNOWN' },
  REQUEST_UNKNOWN: { ...refused, status: 404, tppCode: 'RESOURCE_UNKNOWN' },
  METHOD_NOT_ALLOWED: { ...refused, status: 405, tppCode: 'SERVICE_INVALID' },
  CLIENT_UNKNOWN: { ...denied, status: 401, tppCode: 'TOKEN_UNKNOWN' },
  ENVIRONMENT_FORBIDDEN: { ...denied, status: 403, tppCode: 'SERVICE_BLOCKED' },
  ENVIRONMENT_MISMATCH: { ...denied, status: 409, tppCode: 'STATUS_INVALID' },
  DUPLICATE_MISMATCH: { ...denied, status: 409, tppCode: 'STATUS_INVALID' },
  DUPLICATE_IN_FLIGHT: { ...denied, status: 409, tppCode: 'STATUS_INVALID', retryAfterSeconds: 1 },
  CONTRACT_VIOLATED: { ...refused, status: 400, tppCode: 'FORMAT_ERROR' },
  DUPLICATE_IN_DOUBT: { ...denied, status: 409, tppCode: 'STATUS_INVALID', reachedBank: 'maybe' },
  REQUEST_TIMEOUT: { ...refused, status: 408, tppCode: 'FORMAT_ERROR' },
  BODY_TOO_LARGE: { ...refused, status: 413, tppCode: 'FORMAT_ERROR' },
  EXPECTATION_FAILED: { ...refused, status: 417, tppCode: 'FORMAT_ERROR' },
  HEADERS_TOO_LARGE: { ...refused, status: 431, tppCode: 'FORMAT_ERROR' },
  QUOTA_EXCEEDED: { ...denied, status: 429, tppCode: 'ACCESS_EXCEEDED' },
  QUEUE_FULL: busy,
  QUEUE_TIMEOUT: busy,
  CIRCUIT_OPEN: { ...busy, origin: 'aspsp', proxyError: 'destination_unavailable' },
  STATE_UNAVAILABLE: { ...busy, proxyError: 'proxy_internal_error' },
  OVERLOADED: busy,
  DRAINING: busy,
  NOT_CACHED: { ...denied, status: 504, tppCode: 'SERVICE_UNAVAILABLE' },
  UPSTREAM_UNREACHED: {
    status: 502,
    origin: 'aspsp',
    tppCode: 'SERVICE_UNAVAILABLE',
    reachedBank: 'no',
    proxyError: 'destination_unavailable',
  },
  UPSTREAM_MALFORMED: {
    status: 502,
    origin: 'aspsp',
    tppCode: 'SERVICE_UNAVAILABLE',
    reachedBank: 'maybe',
    proxyError: 'http_protocol_error',
  },
  OUTCOME_UNKNOWN: {
    status: 504,
    origin: 'aspsp',
    tppCode: 'SERVICE_UNAVAILABLE',
    reachedBank: 'maybe',
    proxyError: 'http_response_timeout',
  },
  INTERNAL: {
    status: 500,
    origin: 'gateway',
    tppCode: 'INTERNAL_SERVER_ERROR',
    reachedBank: 'maybe',
    proxyError: 'proxy_internal_error',
  },
} as const satisfies Record<string, ErrorDefinition>;

export type ErrorCode = keyof typeof errorTable;

/** Records may contain a code of another release. */
export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(errorTable, code);

interface ErrorDetails {
  readonly cause?: unknown;
  /** Fields of the response that belong to this error, such as `Allow`. */
  readonly headers?: HeaderFields;
  /** The environment, if it was already chosen. */
  readonly environment?: string | undefined;
  /** More specific than in the table. */
  readonly proxyError?: string;
  /** More specific than in the table. */
  readonly tppCode?: string;
  /** The header or field that is wrong; `path` of the Berlin Group's message. */
  readonly field?: string | undefined;
  /** Whether it concerns only the tenant of the request: others are not refused for this reason. */
  readonly isOfTenant?: boolean;
  readonly executed?: Executed | undefined;
}

/** The bank has executed the request, whose response was lost. Only for the TPP, never for the log: the id is that of its own payment. */
export interface Executed {
  /** `undefined` if nobody knows which payment it is. */
  readonly payment: { readonly id: string; readonly url: string } | undefined;
}

/**
 * An error that the gateway itself returns.
 *
 * The message is for the TPP and for the log: it states what happened and, unless that depends on the operation
 * (`withAdvice`), what to do next. It quotes nothing from the request, which may be secret or personal.
 */
export class GatewayError extends Error {
  readonly code: ErrorCode;
  readonly headers: HeaderFields;
  readonly environment: string | undefined;
  readonly proxyError: string;
  readonly tppCode: string;
  readonly field: string | undefined;
  readonly isOfTenant: boolean;
  readonly executed: Executed | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, { cause: details.cause });
    this.name = 'GatewayError';
    this.code = code;
    this.headers = details.headers ?? [];
    this.environment = details.environment;
    this.proxyError = details.proxyError ?? errorTable[code].proxyError;
    this.tppCode = details.tppCode ?? errorTable[code].tppCode;
    this.field = details.field;
    this.isOfTenant = details.isOfTenant ?? false;
    this.executed = details.executed;
  }
}

/** The database, or what is kept in Redis, cannot be read or written. */
export function stateUnavailable(cause?: unknown): GatewayError {
  const text = 'The data of the gateway is unavailable at the moment. Try again.';
  return new GatewayError('STATE_UNAVAILABLE', text, { cause });
}

/**
 * Nothing was sent, and the time of the next attempt is known.
 *
 * @param waitMs rounded up to whole seconds, at least one
 * @param reason beginning of the message
 * @param details with further fields of the response
 */
export function retryLater(
  waitMs: number,
  code: ErrorCode,
  reason: string,
  { headers = [], ...details }: ErrorDetails = {},
): GatewayError {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  return new GatewayError(code, `${reason}; nothing was sent. Try again in ${seconds} s.`, {
    ...details,
    headers: [['Retry-After', String(seconds)], ...headers],
  });
}

/** The deadline has passed, and the request may have been sent. @param environment unless it is added later */
export function outcomeUnknown(environment?: string): GatewayError {
  return new GatewayError('OUTCOME_UNKNOWN', 'The bank did not respond before the deadline.', {
    environment,
  });
}

/** Any other thrown value becomes INTERNAL: it is a bug of the gateway. */
export function asGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  return new GatewayError('INTERNAL', 'Internal error of the gateway.', { cause: thrown });
}

/** The error with the environment of its request, if that was chosen and the error does not name one. */
export function withEnvironment(error: GatewayError, environment: string | undefined): GatewayError {
  if (environment === undefined || error.environment !== undefined) return error;
  return new GatewayError(error.code, error.message, { ...error, cause: error.cause, environment });
}

/** The error as it is sent to the TPP: with advice on what to do next if the bank can have received the request. */
export function withAdvice(error: GatewayError, operation: AdvisedOperation): GatewayError {
  if (errorTable[error.code].reachedBank === 'no') return error;
  const message = `${error.message} ${adviceOn(error, operation)}`;
  return new GatewayError(error.code, message, { ...error, cause: error.cause });
}

function adviceOn({ executed }: GatewayError, { name, lane }: AdvisedOperation): string {
  if (executed?.payment) {
    const { id, url } = executed.payment;
    return `Do not send it again with another X-Request-ID. The paymentId is ${id}; its status is at ${url}/status.`;
  }
  if (executed)
    return 'Do not send it again with another X-Request-ID: ask the operators of the gateway for the payment.';
  if (lane !== 'write') return readAdvice;
  return name === 'initiatePayment' ? initiationAdvice : writeAdvice;
}

export interface AdvisedOperation {
  readonly name: OperationName;
  readonly lane: Lane;
}

const readAdvice = 'A read changes nothing at the bank: send it again.';
/** For an initiation whose outcome is unknown: the TPP has no payment whose status it could read. */
const initiationAdvice =
  'The bank may have executed the request: do not initiate again; repeat the request with the same X-Request-ID to get its outcome.';
/** For another write. */
const writeAdvice =
  'The bank may have executed the request: do not initiate again; read the status of the payment, or repeat the request with the same X-Request-ID.';
