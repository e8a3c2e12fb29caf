/**
 * What a request can use that only version 1.3.11 of the standard has, and what a bank of 1.3.6 does with it. The list is complete
 * with regard to the differences between the published files, in each service.
 */

import {
  bulk,
  type Changes,
  multipart,
  partsOf,
  periodic,
  request,
  single,
  standingOrder,
} from './judged.ts';

type Judged = ReturnType<typeof request.single>;

export interface Feature {
  readonly name: string;
  readonly request: Judged;
  /** Of a `startAuthorisation`. */
  readonly authorisationType?: 'authorisations' | 'cancellation-authorisations';
  /** Schema path, rule and effect of each deviation from 1.3.6. */
  readonly in6: readonly string[];
}

/** After any day on which the tests may run. */
const day = '2099-03-01';
const order = { startDate: day };
const months = { ...order, frequency: 'MonthlyVariable', monthsOfExecution: ['1', '4', '10'] };
const other = { identification: '4711', schemeNameCode: 'CUID' };
const iban = 'DE02100100109307118603';
const reference = { reference: 'RF18539007547034' };
const longName = (length: number) => ({ creditorAgentName: 'x'.repeat(length) });

const bulkWith = (changes: object = {}, element: object = {}) =>
  request.bulk(bulk({ requestedExecutionDate: day, ...changes }, { ...element }));
const orderWith = (changes: object) => request.periodic(periodic({ ...order, ...changes }));

/** The body of each service with a field of a credit transfer, and the path of the field there. */
const inEachService = (name: string, value: unknown): readonly (readonly [string, Judged, string])[] => [
  ['a payment', request.single(single({ [name]: value })), `body/${name}`],
  ['a standing order', orderWith({ [name]: value }), `body/${name}`],
  ['a bulk', bulkWith({}, { [name]: value }), `body/payments/#/${name}`],
];

const features = (
  what: string,
  places: readonly (readonly [string, Judged, string])[],
  rule: string,
  effect: string,
): readonly Feature[] =>
  places.map(([place, judged, path]) => ({
    name: `${what} of ${place}`,
    request: judged,
    in6: [`${path} ${rule} ${effect}`],
  }));

/** `TPP-Decoupled-Preferred` */
const preference: Changes = { headers: { 'TPP-Decoupled-Preferred': 'true' } };
const inHeader = 'headers/TPP-Decoupled-Preferred not-in-version ignored';

const account = (fields: object) => ({ creditorAccount: { iban, ...fields } });
const debtor = (fields: object) => ({ debtorAccount: { iban, ...fields } });

/** In 1.3.6, an account with nothing but `other` has an unknown field, and no identification. */
const alsoUnknown = (all: readonly Feature[]): readonly Feature[] =>
  all.map(({ in6: [first = ''], ...feature }) => ({
    ...feature,
    in6: [first, `${first.split(' ')[0]}/other not-in-version ignored`],
  }));

/** Each request is valid in 1.3.11. */
export const onlyIn11: readonly Feature[] = [
  {
    name: 'TPP-Decoupled-Preferred, to initiate',
    request: request.single(single(), preference),
    in6: [inHeader],
  },
  {
    name: 'TPP-Decoupled-Preferred, to cancel',
    request: request.read('cancelPayment', preference),
    in6: [inHeader],
  },
  {
    name: 'TPP-Decoupled-Preferred, to authorise',
    request: request.authorisation({}, preference),
    in6: [inHeader],
  },
  {
    name: 'TPP-Decoupled-Preferred, to authorise a cancellation',
    request: request.authorisation({}, preference),
    authorisationType: 'cancellation-authorisations',
    in6: [inHeader],
  },
  {
    name: 'months of a standing order',
    request: orderWith(months),
    in6: ['body/monthsOfExecution not-in-version executed-differently'],
  },
  {
    name: 'months of a standing order in multipart',
    request: request.multipart(multipart(partsOf(standingOrder(months)))),
    in6: ['parts/json_standingorderType/monthsOfExecution not-in-version executed-differently'],
  },
  ...features(
    'another identification of the creditor',
    [
      ['a payment', request.single(single(account({ other }))), 'body/creditorAccount/other'],
      ['a standing order', orderWith(account({ other })), 'body/creditorAccount/other'],
      ['a bulk', bulkWith({}, account({ other })), 'body/payments/#/creditorAccount/other'],
    ],
    'not-in-version',
    'ignored',
  ),
  ...alsoUnknown(
    features(
      'only another identification of the creditor',
      [
        ['a payment', request.single(single({ creditorAccount: { other } })), 'body/creditorAccount'],
        ['a standing order', orderWith({ creditorAccount: { other } }), 'body/creditorAccount'],
        ['a bulk', bulkWith({}, { creditorAccount: { other } }), 'body/payments/#/creditorAccount'],
      ],
      'identification',
      'refused',
    ),
  ),
  ...features(
    'another identification of the debtor',
    [
      ['a payment', request.single(single(debtor({ other }))), 'body/debtorAccount/other'],
      ['a standing order', orderWith(debtor({ other })), 'body/debtorAccount/other'],
      ['a bulk', bulkWith(debtor({ other })), 'body/debtorAccount/other'],
    ],
    'not-in-version',
    'ignored',
  ),
  ...alsoUnknown(
    features(
      'only another identification of the debtor',
      [
        ['a payment', request.single(single({ debtorAccount: { other } })), 'body/debtorAccount'],
        ['a standing order', orderWith({ debtorAccount: { other } }), 'body/debtorAccount'],
        ['a bulk', bulkWith({ debtorAccount: { other } }), 'body/debtorAccount'],
      ],
      'identification',
      'may-be-refused',
    ),
  ),
  ...features(
    'the type of an account',
    [
      [
        'a creditor',
        request.single(single(account({ cashAccountType: 'CACC' }))),
        'body/creditorAccount/cashAccountType',
      ],
      [
        'a debtor',
        request.single(single(debtor({ cashAccountType: 'CACC' }))),
        'body/debtorAccount/cashAccountType',
      ],
      [
        'a standing order',
        orderWith(debtor({ cashAccountType: 'CACC' })),
        'body/debtorAccount/cashAccountType',
      ],
      ['a bulk', bulkWith(debtor({ cashAccountType: 'CACC' })), 'body/debtorAccount/cashAccountType'],
      [
        'a creditor in a bulk',
        bulkWith({}, account({ cashAccountType: 'CACC' })),
        'body/payments/#/creditorAccount/cashAccountType',
      ],
    ],
    'not-in-version',
    'ignored',
  ),
  ...features(
    'a name of the creditor bank with more than 70 characters',
    [
      ['a payment', request.single(single(longName(71))), 'body/creditorAgentName'],
      ['a bulk', bulkWith({}, longName(140)), 'body/payments/#/creditorAgentName'],
    ],
    'max-length',
    'refused',
  ),
  ...features(
    'the debtor',
    [['a bulk', bulkWith({ debtorName: 'PSU' }), 'body/debtorName']],
    'not-in-version',
    'ignored',
  ),
  ...features(
    'who pays the charges',
    ['DEBT', 'CRED', 'SHAR', 'SLEV'].flatMap((chargeBearer) => [
      ['a payment', request.single(single({ chargeBearer })), 'body/chargeBearer'] as const,
      ['a bulk', bulkWith({}, { chargeBearer }), 'body/payments/#/chargeBearer'] as const,
    ]),
    'not-in-version',
    'may-be-ignored',
  ),
  {
    name: 'text/plain',
    request: request.single(single(), { headers: { 'Content-Type': 'text/plain' } }),
    in6: ['headers/Content-Type content-type refused'],
  },
  ...['instructionIdentification', 'debtorName', 'ultimateDebtor', 'ultimateCreditor', 'purposeCode'].flatMap(
    (name) => features(name, inEachService(name, 'RENT'), 'not-in-version', 'may-be-ignored'),
  ),
  ...features(
    'creditorId',
    inEachService('creditorId', 'RENT').slice(0, 2),
    'not-in-version',
    'may-be-ignored',
  ),
  ...features(
    'a structured reference',
    inEachService('remittanceInformationStructured', reference),
    'not-in-version',
    'may-be-ignored',
  ),
  ...features(
    'structured references',
    inEachService('remittanceInformationStructuredArray', [reference]),
    'not-in-version',
    'may-be-refused',
  ),
  {
    name: 'a day of execution',
    request: request.single(single({ requestedExecutionDate: day })),
    in6: ['body/requestedExecutionDate not-in-version executed-at-once'],
  },
];
