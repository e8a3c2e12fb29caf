/**
 * JSON Schemas of the fields that several bodies share, written from the facts of 1.3.6 and 1.3.11. Unlike in the published
 * files, patterns are anchored. Known faults of the files have a level that does not refuse.
 */

import { absent, byVersion, type Schema, since11 } from './standard-versions.ts';

/** A reference to a definition of the same document. */
export const ref = (name: string): Schema => ({ $ref: `#/definitions/${name}` });

/** An object that reports every other property as unknown. */
export const object = (properties: Schema, required: unknown = []): Schema => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

/** A text that should not be empty: ISO 20022 has no empty ones, but the published files do not say so. */
export const text = (maxLength?: number): Schema => ({
  type: 'string',
  minLength: 1,
  ...(maxLength === undefined ? {} : { maxLength }),
});

/** A text that must not be blank. */
export const requiredText = (maxLength?: number): Schema => ({
  type: 'string',
  pattern: '\\S',
  ...(maxLength === undefined ? {} : { maxLength }),
});

/** A boolean. A published example has the text `"true"`. */
export const flag: Schema = {
  type: ['boolean', 'string'],
  pattern: '^(true|false)$',
  remark: { matches: '^(true|false)$', rule: 'text-for-boolean', level: 'usual', effect: 'may-be-refused' },
};

export const date: Schema = { type: 'string', format: 'date' };
export const dateAndTime: Schema = { type: 'string', format: 'date-time' };

export const arrayOf = (items: Schema): Schema => ({ type: 'array', items });

/** A field that a bank of this version ignores. */
export const ignored = { rule: 'not-in-version', level: 'notable', effect: 'ignored' } as const;
/** The files have the field in a comment, for banks that need it. Copies of 1.3.6 uncomment different fields. */
const mayBeIgnored = { rule: 'not-in-version', level: 'notable', effect: 'may-be-ignored' } as const;
/** A field that both versions have in a comment only. */
export const commentedOut = absent('not-in-standard', 'notable', 'may-be-ignored');

/** The published file forbids `01`, but has it in an example. */
const leadingZero = {
  matches: '^0',
  rule: 'leading-zero',
  level: 'usual',
  effect: 'may-be-refused',
} as const;

/** The fields of a standing order's schedule: only `periodic-payments` has them. */
export const schedule: Schema = {
  startDate: date,
  endDate: date,
  executionRule: { type: 'string', enum: ['following', 'preceding'] },
  frequency: {
    type: 'string',
    enum: [
      ...['Daily', 'Weekly', 'EveryTwoWeeks', 'Monthly', 'EveryTwoMonths'],
      ...['Quarterly', 'SemiAnnual', 'Annual', 'MonthlyVariable'],
    ],
  },
  dayOfExecution: { type: 'string', pattern: '^(0?[1-9]|[12][0-9]|3[01])$', remark: leadingZero },
  monthsOfExecution: since11(
    {
      type: 'array',
      minItems: 1,
      maxItems: 11,
      uniqueItems: true,
      items: { type: 'string', pattern: '^(0?[1-9]|1[0-2])$', remark: leadingZero },
    },
    { rule: 'not-in-version', level: 'harmful', effect: 'executed-differently' },
  ),
};

/** The same fields in a body of another service: the bank ignores the schedule, and makes one payment at once. */
export const noSchedule: Schema = Object.fromEntries(
  Object.keys(schedule).map((name) => [name, absent('not-in-service', 'harmful', 'executed-at-once')]),
);

/** The fields of a credit transfer in JSON, in every service. */
export const transfer: Schema = {
  endToEndIdentification: text(35),
  instructionIdentification: since11(text(35), mayBeIgnored),
  debtorName: since11(text(70), mayBeIgnored),
  debtorId: commentedOut,
  ultimateDebtor: since11(text(70), mayBeIgnored),
  instructedAmount: ref('amount'),
  transactionCurrency: commentedOut,
  exchangeRateInformation: commentedOut,
  creditorAccount: ref('account'),
  creditorAgent: { type: 'string', pattern: '^[A-Z]{6}[A-Z2-9][A-NP-Z0-9]([A-Z0-9]{3})?$' },
  creditorAgentName: byVersion(text(70), text(140)),
  creditorName: requiredText(70),
  creditorAddress: ref('address'),
  creditorNameAndAddress: commentedOut,
  creditorId: since11(text(35), mayBeIgnored),
  ultimateCreditor: since11(text(70), mayBeIgnored),
  // ISO 20022 adds codes; the list in the files is from 2018.
  purposeCode: since11({ type: 'string', pattern: '^[A-Z0-9]{4}$' }, mayBeIgnored),
  chargeBearer: since11({ type: 'string', enum: ['DEBT', 'CRED', 'SHAR', 'SLEV'] }, mayBeIgnored),
  remittanceInformationUnstructured: text(140),
  remittanceInformationUnstructuredArray: since11(arrayOf(text(140)), mayBeIgnored),
  // A text in the files of 2020, an object in the copy of 1.3.11.
  remittanceInformationStructured: since11(
    { ...remittance(140), type: ['object', 'string'], maxLength: 140 },
    mayBeIgnored,
  ),
  // The second copy of 1.3.6 has texts instead of objects.
  remittanceInformationStructuredArray: since11(arrayOf(remittance(140)), {
    ...mayBeIgnored,
    effect: 'may-be-refused',
  }),
};

function remittance(maxReference: number): Schema {
  return object(
    { reference: requiredText(maxReference), referenceType: text(35), referenceIssuer: text(35) },
    ['reference'],
  );
}

/** Which fields of an account identify it; `other` only where the version has it. */
export const accountIdentifications = ['iban', 'bban', 'pan', 'maskedPan', 'msisdn'] as const;

/** Definitions that bodies refer to by name. */
export const sharedDefinitions: Readonly<Record<string, Schema>> = {
  amount: object(
    {
      currency: { type: 'string', pattern: '^[A-Z]{3}$' },
      // The files allow 14 digits before the dot and 3 after it, and say "14 significant figures": payment-rules.ts.
      amount: { type: 'string', pattern: '^-?[0-9]{1,14}(\\.[0-9]{1,3})?$' },
    },
    ['currency', 'amount'],
  ),
  account: object({
    iban: { type: 'string', pattern: '^[A-Z]{2}[0-9]{2}[A-Za-z0-9]{1,30}$' },
    bban: { type: 'string', pattern: '^[A-Za-z0-9]{1,30}$' },
    pan: requiredText(35),
    maskedPan: requiredText(35),
    msisdn: requiredText(35),
    currency: { type: 'string', pattern: '^[A-Z]{3}$' },
    other: since11(
      object(
        {
          identification: requiredText(35),
          schemeNameCode: text(35),
          schemeNameProprietary: text(35),
          issuer: text(35),
        },
        ['identification'],
      ),
      ignored,
    ),
    cashAccountType: since11(text(), ignored),
  }),
  address: object(
    {
      streetName: text(70),
      buildingNumber: text(),
      townName: text(),
      postCode: text(),
      country: { type: 'string', pattern: '^[A-Z]{2}$' },
    },
    ['country'],
  ),
};
