/**
 * Schemas of bodies for the OpenAPI description: those of the contract guard, as one schema for 1.3.6 and 1.3.11. It describes what
 * one of the two versions allows, and requires what both require. Other fields are allowed: banks add their own.
 */

import { isDeepStrictEqual } from 'node:util';
import { answerDefinitions } from '../../contract/answer-schemas.ts';
import { arrayOf, ref, sharedDefinitions } from '../../contract/field-schemas.ts';
import { requestDefinitions } from '../../contract/request-schemas.ts';
import { ofVersion, type Schema } from '../../contract/standard-versions.ts';
import { transactionStatuses } from '../../pis/transaction-status.ts';

const transactionStatus: Schema = { type: 'string', enum: [...transactionStatuses] };

const definitions: Readonly<Record<string, Schema>> = {
  ...sharedDefinitions,
  ...answerDefinitions,
  ...requestDefinitions,
};

/** The schemas by their name in the description, such as `PaymentInitiated`. */
export function standardSchemas() {
  const named = Object.entries({ ...definitions, bulkPayment: withElements(requestDefinitions.bulkPayment) });
  const ofBodies = Object.fromEntries(
    named.flatMap(([name, schema]) => {
      const ofBoth = merge(ofVersion('1.3.6', schema), ofVersion('1.3.11', schema));
      return ofBoth === undefined ? [] : [[schemaName(name), ofBoth]];
    }),
  );
  const description = 'The codes of both versions. Treat another code of a bank as a status that may change.';
  return { TransactionStatus: { ...transactionStatus, description }, ...ofBodies };
}

type DefinitionName = keyof typeof answerDefinitions | keyof typeof requestDefinitions;

export const standardRef = (name: DefinitionName) => ({ $ref: pointerTo(name) });

const pointerTo = (name: string) => `#/components/schemas/${schemaName(name)}`;

const schemaName = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);

/** The contract guard judges the elements of a bulk payment one by one, so that its schema does not contain them. */
function withElements(bulkPayment: Schema): Schema {
  const payments = { ...arrayOf(ref('bulkElement')), minItems: 1 };
  return { ...bulkPayment, properties: { ...asSchema(bulkPayment.properties), payments } };
}

/** @returns `undefined` if neither version has the field */
function merge(of6: Schema, of11: Schema): Schema | undefined {
  if (of6.absent) return of11.absent ? undefined : { ...plain(of11), description: '1.3.11 only.' };
  if (of11.absent) return { ...plain(of6), description: '1.3.6 only.' };
  if (isDeepStrictEqual(withoutRemarks(of6), withoutRemarks(of11))) return plain(of11);
  if (isSchema(of6.properties) && isSchema(of11.properties)) return mergeObjects(of6, of11);
  if (isSchema(of6.items) && isSchema(of11.items))
    return { ...plain(of11), items: merge(of6.items, of11.items) };
  return { ...plain(of11), description: `In 1.3.6: ${differences(of6, of11)}.` };
}

function mergeObjects(of6: Schema, of11: Schema): Schema {
  const [properties6, properties11] = [asSchema(of6.properties), asSchema(of11.properties)];
  const names = [...new Set([...Object.keys(properties11), ...Object.keys(properties6)])];
  const required = namesIn(of6.required).filter((name) => namesIn(of11.required).includes(name));
  const properties = names.flatMap((name) => {
    const property = merge(asSchema(properties6[name]), asSchema(properties11[name]));
    return property ? [[name, property] as const] : [];
  });
  return plain({ ...of11, properties: Object.fromEntries(properties), required });
}

/** Such as `maxLength 70`. */
const differences = (of6: Schema, of11: Schema): string =>
  Object.entries(withoutRemarks(of6))
    .filter(([keyword, value]) => !isDeepStrictEqual(value, of11[keyword]))
    .map(([keyword, value]) => `${keyword} ${JSON.stringify(value)}`)
    .join(', ');

const withoutRemarks = ({ remark: _remark, ...schema }: Schema): Schema => schema;

/** Without the keywords of the contract guard and fields that no version has, and with references into the description. */
function plain(schema: Schema): Schema {
  if (isDeepStrictEqual(schema, transactionStatus)) return { $ref: pointerTo('transactionStatus') };
  const { additionalProperties, required, type, properties, ...rest } = withoutRemarks(schema);
  const keywords = {
    ...Object.fromEntries(
      Object.entries(rest).map(([keyword, value]) => [keyword, translate(keyword, value)]),
    ),
    ...(isSchema(properties) && { properties: presentIn(properties) }),
    ...(namesIn(required).length > 0 && { required }),
    ...(isSchema(additionalProperties) && { additionalProperties: plain(additionalProperties) }),
  };
  if (!Array.isArray(type)) return type === undefined ? keywords : { type, ...keywords };
  if (type.includes('boolean')) return { type: 'boolean' }; // the text `"true"` is a fault of an example
  const { maxLength, ...ofObject } = { maxLength: undefined, ...keywords };
  return {
    anyOf: [
      { type: 'object', ...ofObject },
      { type: 'string', maxLength },
    ],
  };
}

const presentIn = (properties: Schema) =>
  Object.fromEntries(
    Object.entries(properties)
      .filter(([, property]) => !asSchema(property).absent)
      .map(([name, property]) => [name, plain(asSchema(property))]),
  );

function translate(keyword: string, value: unknown): unknown {
  if (keyword === '$ref') return pointerTo(String(value).split('/').at(-1) ?? '');
  return isSchema(value) ? plain(value) : value;
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const asSchema = (value: unknown): Schema => (isSchema(value) ? value : { absent: true });
const namesIn = (required: unknown): readonly unknown[] => (Array.isArray(required) ? required : []);
