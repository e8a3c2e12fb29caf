/** Errors of the bank, in either of the standard's two formats. */
import { type HeaderFields, headerValue } from '../pis/headers.ts';
import { jsonResponse, rawResponse, type SimulatedResponse, withHeaders } from './simulated-response.ts';

interface BankErrorDetails {
  /** The location of the error: a header's name, or a path in the body. */
  readonly path?: string;
  readonly headers?: HeaderFields;
}

/** A request that the bank refuses. `code` is one of the standard's message codes. */
export class BankError extends Error {
  readonly status: number;
  readonly code: string;
  readonly details: BankErrorDetails;

  constructor(status: number, code: string, text: string, details: BankErrorDetails = {}) {
    super(text);
    this.name = 'Refusal';
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** The response to a refused request: `tppMessages`, or problem+json if `Accept` names that first or alone. */
export function bankErrorResponse(refusal: BankError, requestHeaders: HeaderFields): SimulatedResponse {
  const { status, code, message: text, details } = refusal;
  const { path } = details;
  const bankResponse = prefersProblem(headerValue(requestHeaders, 'accept') ?? '')
    ? rawResponse(
        status,
        'application/problem+json',
        JSON.stringify({
          type: `https://berlingroup.com/error-codes/${code}`,
          title: code,
          detail: text,
          code,
        }),
      )
    : jsonResponse(status, { tppMessages: [{ category: 'ERROR', code, ...(path && { path }), text }] });
  return withHeaders(bankResponse, details.headers ?? []);
}

function prefersProblem(accept: string): boolean {
  const problem = accept.indexOf('application/problem+json');
  const json = accept.indexOf('application/json');
  return problem !== -1 && (json === -1 || problem < json);
}
