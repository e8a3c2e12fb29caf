/** The two parts of a periodic payment in XML (multipart/form-data): the transfer as pain.001, and its schedule in JSON. */

import type { DeviationList } from './deviation.ts';
import { type Part, readMultipart } from './read-multipart.ts';

// The published files have the same names for all products.
const xmlPart = 'xml_sct';
const orderPart = 'json_standingorderType';

export const xmlPartPath = `parts/${xmlPart}` as const;
export const orderPartPath = `parts/${orderPart}` as const;
export const unknownPartPath = 'parts/*';

export interface PeriodicParts {
  readonly xml: Buffer | undefined;
  readonly order: Buffer | undefined;
}

/** Splits a body into its parts. Reports deviations of their number, names and types. */
export function readPeriodicParts(contentType: string, body: Buffer, list: DeviationList): PeriodicParts {
  const parts = readMultipart(contentType, body);
  if (!parts) {
    list.add('harmful', 'boundary', 'body', 'refused');
    return { xml: undefined, order: undefined };
  }
  if (parts.some(({ name }) => name !== xmlPart && name !== orderPart)) {
    list.add('notable', 'unknown', unknownPartPath, 'ignored');
  }
  return {
    xml: onlyPart(parts, xmlPart, 'application/xml', list),
    order: onlyPart(parts, orderPart, 'application/json', list),
  };
}

function onlyPart(
  parts: readonly Part[],
  wanted: string,
  type: string,
  list: DeviationList,
): Buffer | undefined {
  const found = parts.filter(({ name }) => name === wanted);
  const path = `parts/${wanted}`;
  const [part] = found;
  if (!part) return void list.add('harmful', 'required', path, 'refused');
  if (found.length > 1) list.add('harmful', 'repeated', path, 'refused');
  if (part.contentType !== undefined && !part.contentType.toLowerCase().startsWith(type)) {
    list.add('notable', 'content-type', path, 'may-be-refused');
  }
  return part.body;
}
