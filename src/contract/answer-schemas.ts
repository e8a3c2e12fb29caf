/** JSON Schemas of the bodies that a bank answers, by operation and status. */

import { transactionStatuses } from '../pis/transaction-status.ts';
import {
  arrayOf,
  date,
  dateAndTime,
  flag,
  noSchedule,
  object,
  ref,
  requiredText,
  schedule,
  text,
  transfer,
} from './field-schemas.ts';
import {
  type Absence,
  absent,
  byVersion,
  requiredSince11,
  type Schema,
  since11,
} from './standard-versions.ts';

const notReturned: Absence = { rule: 'not-in-version', level: 'notable', effect: 'not-returned' };

const transactionStatus: Schema = { type: 'string', enum: [...transactionStatuses] };
const psuMessage = text(500);
/** The bank decides whether a link is relative or absolute. */
const link = object({ href: { type: 'string', pattern: '^[^\\s<>"{}|\\\\^`]+$' } }, ['href']);
const tppMessages = arrayOf(ref('tppMessage'));
/** The name in some files, such as those of 1.3.9. */
const tppMessage = absent('singular-name', 'usual', 'client-may-fail');

/** The steps of SCA, in answers to initiations, cancellations and authorisations. */
const scaSteps: Schema = {
  scaMethods: arrayOf(ref('scaMethod')),
  chosenScaMethod: ref('scaMethod'),
  challengeData: object({
    image: text(),
    data: arrayOf(text()),
    imageLink: text(),
    otpMaxLength: { type: 'integer' },
    otpFormat: { type: 'string', enum: ['characters', 'integer'] },
    additionalInformation: text(),
  }),
};

const scaLinks = [
  ...['scaRedirect', 'scaOAuth', 'confirmation', 'self', 'status', 'scaStatus', 'startAuthorisation'],
  'startAuthorisationWithPsuIdentification',
  'startAuthorisationWithPsuAuthentication',
  'startAuthorisationWithEncryptedPsuAuthentication',
  'startAuthorisationWithAuthenticationMethodSelection',
  'startAuthorisationWithTransactionAuthorisation',
  'startAuthorisationWithProprietaryData',
  ...['updatePsuIdentification', 'updateProprietaryData', 'updatePsuAuthentication'],
  ...['updateEncryptedPsuAuthentication', 'updateAdditionalPsuAuthentication'],
  ...['updateAdditionalEncryptedPsuAuthentication', 'selectAuthenticationMethod', 'authoriseTransaction'],
];

/** The name in the examples of 1.3.6. */
const linkOf6 = 'startAuthenticationWithPsuAuthentication';

/** All links that a version of the standard names. */
export const linkNames: ReadonlySet<string> = new Set([...scaLinks, linkOf6]);

const initiated = ['debtorAccount', 'instructedAmount', 'creditorAccount', 'creditorName'];

/** Fields that the bank adds to a payment that it returns. */
const state: Schema = { transactionStatus, tppMessages: since11(tppMessages, notReturned), tppMessage };

export const answerDefinitions = {
  link,
  links: {
    type: 'object',
    properties: {
      ...Object.fromEntries(scaLinks.map((name) => [name, ref('link')])),
      [linkOf6]: byVersion(ref('link'), {
        absent: { rule: 'not-in-version', level: 'notable', effect: 'client-may-fail' },
      }),
    },
    additionalProperties: ref('link'),
  },
  scaStatus: {
    type: 'string',
    enum: [
      ...['received', 'psuIdentified', 'psuAuthenticated', 'scaMethodSelected', 'started'],
      ...['unconfirmed', 'finalised', 'failed', 'exempted'],
    ],
  },
  // Only one copy of 1.3.6 has closed lists of types and codes: a client must accept other values.
  scaMethod: object(
    {
      authenticationType: requiredText(),
      authenticationVersion: text(),
      authenticationMethodId: requiredText(35),
      name: text(),
      explanation: text(),
    },
    ['authenticationType', 'authenticationMethodId'],
  ),
  tppMessage: object(
    {
      category: { type: 'string', enum: ['ERROR', 'WARNING'] },
      code: byVersion(
        {
          ...requiredText(),
          remark: { ...notReturned, matches: '^BENEFICIARY_WHITELISTING_REQUIRED$' },
        },
        requiredText(),
      ),
      path: text(),
      text: text(500),
    },
    ['category', 'code'],
  ),

  paymentInitiated: object(
    {
      transactionStatus,
      paymentId: requiredText(),
      transactionFees: ref('amount'),
      currencyConversionFee: ref('amount'),
      estimatedTotalAmount: ref('amount'),
      estimatedInterbankSettlementAmount: ref('amount'),
      transactionFeeIndicator: flag,
      ...scaSteps,
      scaStatus: since11(ref('scaStatus'), notReturned),
      psuMessage,
      tppMessages,
      tppMessage,
      _links: ref('links'),
    },
    ['transactionStatus', 'paymentId', '_links'],
  ),
  paymentStatus: object(
    {
      transactionStatus,
      fundsAvailable: flag,
      psuMessage,
      scaStatus: absent('not-in-standard', 'usual', 'none'), // in the published extended example
      _links: since11(ref('links'), notReturned),
      tppMessages: since11(tppMessages, notReturned),
      tppMessage,
    },
    ['transactionStatus'],
  ),
  shownPayment: object(
    {
      ...transfer,
      debtorAccount: ref('account'),
      requestedExecutionDate: since11(date, notReturned),
      requestedExecutionTime: dateAndTime,
      ...noSchedule,
      ...state,
    },
    initiated,
  ),
  shownPeriodicPayment: object(
    {
      ...transfer,
      debtorAccount: ref('account'),
      requestedExecutionDate: date,
      requestedExecutionTime: dateAndTime,
      ...schedule,
      ...state,
    },
    [...initiated, 'startDate', 'frequency'],
  ),
  /** The JSON part of a periodic payment whose other part is pain.001. */
  shownStandingOrder: object(schedule, ['startDate', 'frequency']),
  shownBulkPayment: object(
    {
      batchBookingPreferred: flag,
      debtorAccount: ref('account'),
      debtorName: since11(text(70), notReturned),
      paymentInformationId: text(35),
      requestedExecutionDate: date,
      requestedExecutionTime: dateAndTime,
      payments: arrayOf(object(transfer)),
      ...state,
    },
    ['payments', 'debtorAccount'],
  ),
  cancellationStarted: object(
    {
      transactionStatus,
      ...scaSteps,
      scaStatus: since11(ref('scaStatus'), notReturned),
      psuMessage: since11(psuMessage, notReturned),
      _links: ref('links'),
    },
    ['transactionStatus'],
  ),
  authorisationStarted: object(
    {
      scaStatus: ref('scaStatus'),
      authorisationId: requiredText(),
      ...scaSteps,
      psuMessage,
      tppMessages: since11(tppMessages, notReturned),
      tppMessage,
      _links: ref('links'),
    },
    ['scaStatus', 'authorisationId', '_links'],
  ),
  /** After each step of the payer: identification, password, choice of a method, TAN, confirmation. */
  authorisationUpdated: object(
    {
      transactionFees: ref('amount'),
      currencyConversionFee: ref('amount'),
      estimatedTotalAmount: ref('amount'),
      estimatedInterbankSettlementAmount: ref('amount'),
      scaStatus: ref('scaStatus'),
      authorisationId: text(),
      trustedBeneficiaryFlag: flag,
      ...scaSteps,
      psuMessage,
      tppMessages: since11(tppMessages, notReturned),
      tppMessage,
      _links: ref('links'),
    },
    ['scaStatus'],
  ),
  authorisationList: object(
    {
      authorisationIds: arrayOf(requiredText()),
      // In the oldest file of 1.3.6, for cancellations.
      cancellationIds: absent('not-in-version', 'notable', 'client-may-fail'),
    },
    ['authorisationIds'],
  ),
  authorisation: object(
    {
      scaStatus: ref('scaStatus'),
      trustedBeneficiaryFlag: flag,
      psuMessage: since11(psuMessage, notReturned),
      _links: since11(ref('links'), notReturned),
      tppMessages: since11(tppMessages, notReturned),
      tppMessage,
    },
    requiredSince11([], ['scaStatus']),
  ),

  tppMessagesError: object({ tppMessages: { ...tppMessages, minItems: 1 }, _links: ref('links') }, [
    'tppMessages',
  ]),
  problem: object(
    {
      type: requiredText(70),
      title: text(70),
      detail: text(500),
      code: requiredText(),
      additionalErrors: arrayOf(
        object({ title: text(70), detail: text(500), code: requiredText() }, ['code']),
      ),
      _links: ref('links'),
    },
    ['type', 'code'],
  ),
} as const satisfies Readonly<Record<string, Schema>>;
