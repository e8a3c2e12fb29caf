/**
 * JSON Schemas of the bodies that a TPP sends. Operation, service and product decide which one applies: the variants of the
 * published files overlap, so that there a standing order is also a valid single payment.
 */

import {
  commentedOut,
  date,
  dateAndTime,
  flag,
  ignored,
  noSchedule,
  object,
  ref,
  requiredText,
  schedule,
  text,
  transfer,
} from './field-schemas.ts';
import { absent, type Schema, since11 } from './standard-versions.ts';

const executedAtOnce = absent('not-in-service', 'harmful', 'executed-at-once');
const refusedHere = absent('not-in-service', 'harmful', 'refused');
const ignoredHere = absent('not-in-service', 'notable', 'may-be-ignored');

/** The data of the payer; a body has those of one step. */
const stepsOfPayer: Schema = {
  psuData: {
    ...object({
      password: text(),
      encryptedPassword: text(),
      additionalPassword: text(),
      additionalEncryptedPassword: text(),
    }),
    minProperties: 1,
  },
  authenticationMethodId: requiredText(35),
  scaAuthenticationData: requiredText(),
};

export const requestDefinitions = {
  singlePayment: object(
    {
      ...transfer,
      debtorAccount: ref('account'),
      requestedExecutionDate: since11(date, {
        rule: 'not-in-version',
        level: 'harmful',
        effect: 'executed-at-once',
      }),
      requestedExecutionTime: absent('not-in-standard', 'harmful', 'executed-at-once'),
      ...noSchedule,
    },
    ['debtorAccount', 'instructedAmount', 'creditorAccount', 'creditorName'],
  ),

  /** Its `payments` are judged one by one, as `bulkElement`. */
  bulkPayment: object(
    {
      batchBookingPreferred: flag,
      debtorAccount: ref('account'),
      debtorName: since11(text(70), ignored),
      paymentInformationId: commentedOut,
      requestedExecutionDate: date,
      requestedExecutionTime: dateAndTime,
      payments: { type: 'array', minItems: 1 },
      ...noSchedule,
    },
    ['payments', 'debtorAccount'],
  ),
  bulkElement: object(
    {
      ...transfer,
      creditorId: ignoredHere,
      debtorAccount: refusedHere,
      requestedExecutionDate: executedAtOnce,
      requestedExecutionTime: executedAtOnce,
      ...noSchedule,
    },
    ['instructedAmount', 'creditorAccount', 'creditorName'],
  ),

  periodicPayment: object(
    {
      ...transfer,
      debtorAccount: ref('account'),
      creditorAgentName: ignoredHere,
      chargeBearer: ignoredHere,
      requestedExecutionDate: ignoredHere,
      requestedExecutionTime: ignoredHere,
      ...schedule,
    },
    ['debtorAccount', 'instructedAmount', 'creditorAccount', 'creditorName', 'startDate', 'frequency'],
  ),
  /** The JSON part of a periodic payment whose other part is pain.001. */
  standingOrder: object(schedule, ['startDate', 'frequency']),

  /** It is empty, or has the data of one step. */
  authorisationStart: object({
    ...stepsOfPayer,
    confirmationCode: absent('not-in-service', 'notable', 'ignored'), // belongs to PUT
  }),
  /** As above; after a redirect, it may be a confirmation. */
  authorisationUpdate: object({ ...stepsOfPayer, confirmationCode: requiredText() }),
} as const satisfies Readonly<Record<string, Schema>>;
