/** The formats of messages, by service and product. The published files state them in descriptions only. */

import type { OperationName } from '../pis/operations.ts';
import type { DeviationList } from './deviation.ts';
import type { StandardVersion } from './standard-versions.ts';

export type BodyFormat = 'json' | 'xml' | 'multipart';

/** The products of the standard; a bank publishes which of them it offers, and may offer others. */
const products = [
  'sepa-credit-transfers',
  'instant-sepa-credit-transfers',
  'target-2-payments',
  'cross-border-credit-transfers',
];

export const knownProducts: ReadonlySet<string> = new Set([
  ...products,
  ...products.map((product) => `pain.001-${product}`),
]);

export const isXmlProduct = (product: string): boolean => product.startsWith('pain.001-');

/** The format of an initiation. */
export function formatOf(service: string, product: string): BodyFormat {
  if (!isXmlProduct(product)) return 'json';
  return service === 'periodic-payments' ? 'multipart' : 'xml';
}

export const mediaTypes: Readonly<Record<BodyFormat, string>> = {
  json: 'application/json',
  xml: 'application/xml',
  multipart: 'multipart/form-data',
};

/** The type without its parameters, in lower case; empty if there is none. */
export const essenceOf = (contentType: string | undefined): string =>
  contentType === 'application/json' // the usual value
    ? contentType
    : (contentType?.split(';', 1)[0] ?? '').trim().toLowerCase();

/** Whether the body has the expected format, so that it can be judged as such. */
export function hasFormat(contentType: string | undefined, format: BodyFormat): boolean {
  const essence = essenceOf(contentType);
  return essence === mediaTypes[format] || (essence === plainText && format !== 'multipart');
}

export const plainText = 'text/plain';

/** Checks the type of an initiation or of the body that starts an authorisation. */
export function checkContentType(
  version: StandardVersion,
  operation: OperationName,
  contentType: string | undefined,
  format: BodyFormat,
  list: DeviationList,
): void {
  const essence = essenceOf(contentType);
  if (essence === mediaTypes[format]) {
    if (contentType !== undefined && hasOtherCharset(contentType, charsets[format])) {
      list.add('harmful', 'charset', path, 'refused');
    }
    return;
  }
  if (
    essence === plainText &&
    operation === 'initiatePayment' &&
    format !== 'multipart' &&
    version === '1.3.11'
  ) {
    list.add('notable', 'content-type', path, 'may-be-refused'); // copies of 1.3.9 and 1.3.11 allow it
    return;
  }
  list.add('harmful', 'content-type', path, 'refused');
}

const path = 'headers/Content-Type';

/** RFC 8259: JSON between systems is UTF-8. The charset of XML has precedence over its declaration (RFC 7303). */
const charsets: Readonly<Record<BodyFormat, RegExp>> = {
  json: /^utf-8$/i,
  xml: /^(?:utf-8|us-ascii|iso-8859-1|windows-1252)$/i,
  multipart: /^utf-8$/i,
};

function hasOtherCharset(contentType: string, allowed: RegExp): boolean {
  if (contentType.length === 'application/json'.length) return false;
  const found = contentType.matchAll(/;\s*charset\s*=\s*"?([^\s;"]*)"?/gi);
  return Array.from(found).some(([, charset = '']) => !allowed.test(charset));
}

/** Whether `Accept` allows a format of the standard's answers (RFC 9110 section 12.5.1, without weights). */
export function acceptsAnswer(accept: string, operation: OperationName, product: string): boolean {
  if (accept === 'application/json') return true; // the usual value
  return accept
    .toLowerCase()
    .split(',')
    .some((range) => {
      const type = (range.split(';', 1)[0] ?? '').trim();
      if (type === 'application/json' || type === '*/*' || type === 'application/*' || type === '')
        return true;
      if (operation === 'getPaymentStatus' && type === 'text/event-stream') return true; // the gateway answers it
      return isXmlProduct(product) && (type === 'application/xml' || type === 'multipart/form-data');
    });
}
