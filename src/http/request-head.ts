/**
 * Reads the head of a request in one pass: the first reason to refuse it, the fields that the gateway needs, and the fields for
 * the bank.
 *
 * Node's parser refuses bytes that are ambiguous on the wire. This file refuses heads that become ambiguous when two
 * programs read them: the bank must receive the request that was validated here (RFC 9112 section 11.2).
 */

import {
  connectionOptions,
  type HeaderField,
  type HeaderFields,
  isHopByHop,
  isKeptFromBank,
  withoutFields,
} from '../pis/headers.ts';
import { cacheByName } from '../pis/name-cache.ts';
import { isDecodable } from '../request/content-coding.ts';
import { GatewayError } from '../request/errors.ts';
import type { Client } from '../request/messages.ts';

/** Node's own limit does not refuse: it silently drops the fields above it. */
const maxFields = 100;

/** Fields that must not be repeated: two programs may use different ones. */
const singletonFields: readonly string[] = [
  'authorization',
  'consent-id',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'digest',
  'expect',
  'host',
  'penstock-environment',
  'psu-id',
  'psu-id-type',
  'psu-corporate-id',
  'psu-corporate-id-type',
  'psu-ip-address',
  'signature',
  'tpp-nok-redirect-uri',
  'tpp-notification-uri',
  'tpp-redirect-uri',
  'tpp-signature-certificate',
  'transfer-encoding',
  'x-api-key',
  'x-request-id',
];

/** The head of one request. A slot of a field holds its first value; `undefined` if the request does not have the field. */
export class RequestHead {
  /** The first reason to refuse the head: HEADERS_TOO_LARGE, HEADER_MALFORMED, REQUEST_ID_INVALID or EXPECTATION_FAILED. */
  readonly error: GatewayError | undefined;
  /** End-to-end fields for the bank, with names and values as they were sent. */
  readonly outbound: HeaderFields;
  accept: string | undefined = undefined;
  apiKey: string | undefined = undefined;
  contentLength: string | undefined = undefined;
  expect: string | undefined = undefined;
  host: string | undefined = undefined;
  /** Whether the request has `If-None-Match` or `Prefer`. */
  mayListen = false;
  /** Set when the client is identified: for the record, if the request is refused after that. */
  client: Client | undefined = undefined;
  /** Value of `Penstock-Environment`. */
  requestedEnvironment: string | undefined = undefined;
  /** `undefined` also if the field is repeated or is not a UUID. */
  requestId: string | undefined = undefined;
  transferEncoding: string | undefined = undefined;
  /** The options of all `Connection` fields, separated by commas. */
  #connection: string | undefined = undefined;

  /**
   * @param rawHeaders  Node's flat list of names and values
   * @param httpVersion `1.1` or `1.0`; any other text is refused
   */
  constructor(rawHeaders: readonly string[], httpVersion: string) {
    const outbound: HeaderField[] = [];
    let nameError: GatewayError | undefined;
    let seenSingletons = 0;
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const field = rawHeaders[at] ?? '';
      const value = rawHeaders[at + 1] ?? '';
      const traits = traitsOf(field);
      if (traits.isAmbiguous) nameError ??= underscoreError();
      if (traits.singletonBit & seenSingletons) nameError ??= repetitionError(traits.name);
      seenSingletons |= traits.singletonBit;
      if (traits.isReadHere) this.#read(traits.name, value);
      if (traits.isForwarded)
        outbound.push([field, traits.name === 'accept-encoding' ? decodableCodings(value) : value]);
    }
    if (this.requestId !== undefined && !isUuid(this.requestId)) this.requestId = undefined;
    const options = this.#connection === undefined ? [] : connectionOptions(this.#connection);
    this.outbound = options.length === 0 ? outbound : withoutFields(outbound, new Set(options));
    this.error =
      sizeError(rawHeaders.length / 2) ??
      versionError(httpVersion) ??
      nameError ??
      this.#hostError(httpVersion) ??
      optionsError(options) ??
      this.#framingError(httpVersion) ??
      this.#expectationError();
  }

  /** Whether the head announces a body: of at least one byte, or a chunked one, which may turn out to be empty. */
  get announcesBody(): boolean {
    return this.transferEncoding !== undefined || Number(this.contentLength ?? 0) > 0;
  }

  #read(name: string, value: string): void {
    switch (name) {
      case 'accept':
        this.accept ??= value;
        break;
      case 'connection':
        this.#connection = this.#connection === undefined ? value : `${this.#connection},${value}`;
        break;
      case 'content-length':
        this.contentLength ??= value;
        break;
      case 'expect':
        this.expect ??= value;
        break;
      case 'host':
        this.host ??= value;
        break;
      case 'if-none-match':
      case 'prefer':
        this.mayListen = true;
        break;
      case 'penstock-environment':
        this.requestedEnvironment ??= value;
        break;
      case 'transfer-encoding':
        this.transferEncoding ??= value;
        break;
      case 'x-api-key':
        this.apiKey ??= value;
        break;
      case 'x-request-id':
        this.requestId = this.requestId === undefined ? value : repeatedId;
    }
  }

  #hostError(httpVersion: string): GatewayError | undefined {
    if (httpVersion !== '1.1' || this.host !== undefined) return undefined;
    return malformedHeader('host', 'The Host header is missing; send it.');
  }

  #framingError(httpVersion: string): GatewayError | undefined {
    if (this.transferEncoding !== undefined && this.transferEncoding !== 'chunked') {
      const text = 'Transfer-Encoding must be "chunked", without other codings.';
      return malformedHeader('transfer-encoding', text);
    }
    if (this.transferEncoding !== undefined && httpVersion !== '1.1')
      return malformedHeader('transfer-encoding', 'Transfer-Encoding requires HTTP/1.1.');
    if (this.contentLength === undefined || plainNumber.test(this.contentLength)) return undefined;
    const text = 'Content-Length must be a plain decimal number without leading zeros.';
    return malformedHeader('content-length', text);
  }

  #expectationError(): GatewayError | undefined {
    if (this.expect === undefined || this.expect.toLowerCase() === '100-continue') return undefined;
    const text = 'Expect must be "100-continue".';
    return new GatewayError('EXPECTATION_FAILED', text, { field: 'Expect' });
  }
}

/** Any version of UUID, in upper or lower case: the standard restricts neither (its parameter is `format: uuid`). */
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether a text can be an `X-Request-ID`. */
export const isUuid = (text: string): boolean => uuid.test(text);
/** Replaces the values of a repeated X-Request-ID. It is not a UUID, so that the request is refused. */
const repeatedId = 'repeated';
const plainNumber = /^(0|[1-9][0-9]{0,14})$/;

/** How the fields of one name are treated. */
interface FieldTraits {
  /** In lower case. */
  readonly name: string;
  /** A different bit for each singleton field (at most 31 of them); 0 for all other fields. */
  readonly singletonBit: number;
  /** Whether `RequestHead` has a slot for it. */
  readonly isReadHere: boolean;
  readonly isForwarded: boolean;
  /** Whether the name contains an underscore, which some programs read as a hyphen. */
  readonly isAmbiguous: boolean;
}

const slotFields: ReadonlySet<string> = new Set([
  'accept',
  'connection',
  'content-length',
  'expect',
  'host',
  'if-none-match',
  'penstock-environment',
  'prefer',
  'transfer-encoding',
  'x-api-key',
  'x-request-id',
]);

const traitsOf = cacheByName((field): FieldTraits => {
  const name = field.toLowerCase();
  const singleton = singletonFields.indexOf(name);
  return {
    name,
    singletonBit: singleton < 0 ? 0 : 1 << singleton,
    isReadHere: slotFields.has(name),
    isForwarded: !isHopByHop(name) && !isKeptFromBank(name),
    isAmbiguous: name.includes('_'),
  };
});

/**
 * An `Accept-Encoding` without the codings that the gateway cannot decode (RFC 9110 section 12.5.3): it has to read the bank's answer.
 * `*` would allow them.
 */
const decodableCodings = cacheByName((value): string => {
  const members = value.split(',').map((member) => member.trim());
  const known = members.filter((member) => isDecodable((member.split(';', 1)[0] ?? '').trim().toLowerCase()));
  return known.length === 0 ? 'identity' : known.join(', ');
});

function sizeError(fields: number): GatewayError | undefined {
  if (fields <= maxFields) return undefined;
  return new GatewayError(
    'HEADERS_TOO_LARGE',
    `The request has more than ${maxFields} header fields; send fewer.`,
  );
}

function versionError(httpVersion: string): GatewayError | undefined {
  if (httpVersion === '1.1' || httpVersion === '1.0') return undefined;
  return malformedHeader(undefined, 'The protocol version is not supported; use HTTP/1.1.');
}

function optionsError(options: readonly string[]): GatewayError | undefined {
  const named = options.find((option) => singletonFields.includes(option));
  if (named === undefined) return undefined;
  return malformedHeader(
    'connection',
    `Connection names the end-to-end header ${named}; remove it from Connection.`,
  );
}

const underscoreError = () =>
  malformedHeader(undefined, 'A header name contains an underscore; use a hyphen.');

function repetitionError(name: string): GatewayError {
  const code = name === 'x-request-id' ? 'REQUEST_ID_INVALID' : 'HEADER_MALFORMED';
  const text = `The header ${name} appears more than once; send it once.`;
  return new GatewayError(code, text, { field: name });
}

function malformedHeader(field: string | undefined, message: string): GatewayError {
  return new GatewayError('HEADER_MALFORMED', message, field === undefined ? {} : { field });
}
