import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JudgedRequest } from '../../../src/contract/judge-request.ts';
import type { JudgedResponse } from '../../../src/contract/judge-response.ts';
import {
  answer,
  answerVerdictOf,
  bulk,
  bulkElement,
  contract6,
  contract11,
  multipart,
  partsOf,
  periodic,
  request,
  single,
  standingOrder,
  verdictOf,
} from '../../kit/judged.ts';

const other = { identification: '4711', schemeNameCode: 'CUID' };
const months = { frequency: 'MonthlyVariable', monthsOfExecution: ['1', '4', '10'] };

/** A request that 1.3.11 has nothing against, and what 1.3.6 does with it. */
const features: readonly (readonly [name: string, judged: JudgedRequest, in6: string])[] = [
  [
    'TPP-Decoupled-Preferred, to initiate',
    request.single(undefined, { headers: { 'TPP-Decoupled-Preferred': 'true' } }),
    'notable not-in-version headers/TPP-Decoupled-Preferred ignored',
  ],
  [
    'TPP-Decoupled-Preferred, to cancel',
    request.read('cancelPayment', { headers: { 'TPP-Decoupled-Preferred': 'false' } }),
    'notable not-in-version headers/TPP-Decoupled-Preferred ignored',
  ],
  [
    'TPP-Decoupled-Preferred, to start an authorisation',
    request.authorisation(undefined, { headers: { 'TPP-Decoupled-Preferred': 'true' } }),
    'notable not-in-version headers/TPP-Decoupled-Preferred ignored',
  ],
  [
    'months of a standing order',
    request.periodic(periodic(months)),
    'harmful not-in-version body/monthsOfExecution executed-differently',
  ],
  [
    'months of a standing order in multipart',
    request.multipart(multipart(partsOf(standingOrder(months)))),
    'harmful not-in-version parts/json_standingorderType/monthsOfExecution executed-differently',
  ],
  [
    'an account with another identification as well',
    request.single(single({ creditorAccount: { iban: 'DE02100100109307118603', other } })),
    'notable not-in-version body/creditorAccount/other ignored',
  ],
  [
    'an account with another identification only',
    request.single(single({ creditorAccount: { other } })),
    'harmful identification body/creditorAccount refused',
  ],
  [
    'a debtor with another identification only',
    request.periodic(periodic({ debtorAccount: { other } })),
    'notable identification body/debtorAccount may-be-refused',
  ],
  [
    'another identification in a bulk',
    request.bulk(bulk({}, { creditorAccount: { other } })),
    'harmful identification body/payments/#/creditorAccount refused',
  ],
  [
    'the type of an account',
    request.single(single({ debtorAccount: { iban: 'DE40100100103307118608', cashAccountType: 'CACC' } })),
    'notable not-in-version body/debtorAccount/cashAccountType ignored',
  ],
  [
    'a name of the bank with 71 characters',
    request.single(single({ creditorAgentName: 'x'.repeat(71) })),
    'harmful max-length body/creditorAgentName refused',
  ],
  [
    'a name of the bank with 140 characters in a bulk',
    request.bulk(bulk({}, { creditorAgentName: 'x'.repeat(140) })),
    'harmful max-length body/payments/#/creditorAgentName refused',
  ],
  [
    'the debtor of a bulk',
    request.bulk(bulk({ debtorName: 'PSU' })),
    'notable not-in-version body/debtorName ignored',
  ],
  [
    'who pays the charges',
    request.single(single({ chargeBearer: 'SLEV' })),
    'notable not-in-version body/chargeBearer may-be-ignored',
  ],
  [
    'who pays the charges in a bulk',
    request.bulk(bulk({}, { chargeBearer: 'SHAR' })),
    'notable not-in-version body/payments/#/chargeBearer may-be-ignored',
  ],
  [
    'a day of execution',
    request.single(single({ requestedExecutionDate: '2027-03-01' })),
    'harmful not-in-version body/requestedExecutionDate executed-at-once',
  ],
  ...['instructionIdentification', 'debtorName', 'ultimateDebtor', 'ultimateCreditor', 'creditorId'].map(
    (name) =>
      [
        name,
        request.single(single({ [name]: 'text' })),
        `notable not-in-version body/${name} may-be-ignored`,
      ] as const,
  ),
  [
    'the identification of a creditor in a standing order',
    request.periodic(periodic({ creditorId: 'DE98ZZZ09999999999' })),
    'notable not-in-version body/creditorId may-be-ignored',
  ],
  [
    'a purpose',
    request.periodic(periodic({ purposeCode: 'RENT' })),
    'notable not-in-version body/purposeCode may-be-ignored',
  ],
  [
    'a structured reference',
    request.single(single({ remittanceInformationStructured: { reference: 'RF18539007547034' } })),
    'notable not-in-version body/remittanceInformationStructured may-be-ignored',
  ],
  [
    'structured references',
    request.bulk(bulk({}, { remittanceInformationStructuredArray: [{ reference: 'RF18539007547034' }] })),
    'notable not-in-version body/payments/#/remittanceInformationStructuredArray may-be-refused',
  ],
  [
    'several texts',
    request.single(single({ remittanceInformationUnstructuredArray: ['one', 'two'] })),
    'notable not-in-version body/remittanceInformationUnstructuredArray may-be-ignored',
  ],
];

/** What only one of the versions finds wrong. */
const wrongIn11: readonly (readonly [name: string, judged: JudgedRequest, in11: string])[] = [
  [
    'charges that nobody pays',
    request.single(single({ chargeBearer: 'NONE' })),
    'harmful enum body/chargeBearer refused',
  ],
  [
    'a malformed day of execution',
    request.single(single({ requestedExecutionDate: 'tomorrow' })),
    'harmful format body/requestedExecutionDate refused',
  ],
  [
    'a malformed purpose',
    request.single(single({ purposeCode: 'rent' })),
    'harmful pattern body/purposeCode refused',
  ],
  [
    'MonthlyVariable without months',
    request.periodic(periodic({ frequency: 'MonthlyVariable' })),
    'harmful months-and-frequency body/monthsOfExecution refused',
  ],
  [
    'months with another frequency',
    request.periodic(periodic({ monthsOfExecution: ['1'] })),
    'harmful months-and-frequency body/monthsOfExecution refused',
  ],
  [
    'twelve months',
    request.periodic(
      periodic({ ...months, monthsOfExecution: Array.from({ length: 12 }, (_, at) => `${at + 1}`) }),
    ),
    'harmful max-items body/monthsOfExecution refused',
  ],
  [
    'a month twice',
    request.periodic(periodic({ ...months, monthsOfExecution: ['1', '1'] })),
    'harmful unique-items body/monthsOfExecution refused',
  ],
  [
    'month 13',
    request.periodic(periodic({ ...months, monthsOfExecution: ['13'] })),
    'harmful pattern body/monthsOfExecution/# refused',
  ],
  [
    'another identification without its value',
    request.single(single({ creditorAccount: { other: { issuer: 'bank' } } })),
    'harmful required body/creditorAccount/other/identification refused',
  ],
  [
    'structured references as texts',
    request.single(single({ remittanceInformationStructuredArray: ['RF18539007547034'] })),
    'harmful type body/remittanceInformationStructuredArray/# refused',
  ],
  [
    'a preference that is no boolean',
    request.single(undefined, { headers: { 'TPP-Decoupled-Preferred': 'maybe' } }),
    'harmful type headers/TPP-Decoupled-Preferred refused',
  ],
];

const links = { self: { href: '/psd2/v1/payments/1' } };
const messages = [{ category: 'WARNING', code: 'WARNING', text: 'Execution on the next business day' }];
const initiated = { transactionStatus: 'RCVD', paymentId: '1234', _links: links };
const started = { scaStatus: 'received', authorisationId: '1', _links: links };

/** An answer that 1.3.11 has nothing against, and what a client of 1.3.6 cannot expect of it. */
const returned: readonly (readonly [name: string, judged: JudgedResponse, in6: string])[] = [
  [
    'scaStatus of an initiation',
    answer('initiatePayment', 201, { ...initiated, scaStatus: 'received' }),
    'scaStatus',
  ],
  [
    'scaStatus of a cancellation',
    answer('cancelPayment', 202, { transactionStatus: 'ACTC', scaStatus: 'received' }),
    'scaStatus',
  ],
  [
    'a message for the PSU who cancels',
    answer('cancelPayment', 202, { transactionStatus: 'ACTC', psuMessage: 'Confirm it' }),
    'psuMessage',
  ],
  [
    'links of a status',
    answer('getPaymentStatus', 200, { transactionStatus: 'ACCP', _links: links }),
    '_links',
  ],
  [
    'messages with a status',
    answer('getPaymentStatus', 200, { transactionStatus: 'ACCP', tppMessages: messages }),
    'tppMessages',
  ],
  [
    'links of an authorisation',
    answer('getAuthorisation', 200, { scaStatus: 'started', _links: links }),
    '_links',
  ],
  [
    'messages with an authorisation',
    answer('getAuthorisation', 200, { scaStatus: 'started', tppMessages: messages }),
    'tppMessages',
  ],
  [
    'a message for the PSU of an authorisation',
    answer('getAuthorisation', 200, { scaStatus: 'started', psuMessage: 'Confirm it' }),
    'psuMessage',
  ],
  ['messages with a payment', answer('getPayment', 200, single({ tppMessages: messages })), 'tppMessages'],
  [
    'messages when an authorisation starts',
    answer('startAuthorisation', 201, { ...started, tppMessages: messages }),
    'tppMessages',
  ],
  [
    'a code of an initiation',
    answer('initiatePayment', 201, {
      ...initiated,
      tppMessages: [{ category: 'WARNING', code: 'BENEFICIARY_WHITELISTING_REQUIRED' }],
    }),
    'tppMessages/#/code',
  ],
  ['who pays the charges', answer('getPayment', 200, single({ chargeBearer: 'SLEV' })), 'chargeBearer'],
  [
    'the type of an account',
    answer(
      'getPayment',
      200,
      single({ debtorAccount: { iban: 'DE40100100103307118608', cashAccountType: 'CACC' } }),
    ),
    'debtorAccount/cashAccountType',
  ],
  ['months', answer('getPeriodicPayment', 200, periodic(months)), 'monthsOfExecution'],
  [
    'the identification of the creditor',
    answer('getPeriodicPayment', 200, periodic({ creditorId: '1' })),
    'creditorId',
  ],
];

describe('the versions of the standard', () => {
  for (const [name, judged, in6] of features) {
    test(`only 1.3.11 has ${name}`, () => {
      assert.deepEqual(verdictOf(contract11, judged), []);
      assert.ok(verdictOf(contract6, judged).includes(in6), verdictOf(contract6, judged).join('\n'));
    });
  }

  for (const [name, judged, in11] of wrongIn11) {
    test(`1.3.11 refuses ${name}`, () => {
      assert.ok(verdictOf(contract11, judged).includes(in11), verdictOf(contract11, judged).join('\n'));
      assert.ok(!verdictOf(contract6, judged).includes(in11));
    });
  }

  test('1.3.6 refuses text/plain, which copies of 1.3.11 accept', () => {
    const judged = request.single(undefined, { headers: { 'Content-Type': 'text/plain' } });
    assert.deepEqual(verdictOf(contract6, judged), ['harmful content-type headers/Content-Type refused']);
    assert.deepEqual(verdictOf(contract11, judged), [
      'notable content-type headers/Content-Type may-be-refused',
    ]);
  });

  test('both have MonthlyVariable, and only 1.3.11 ties it to months', () => {
    assert.deepEqual(verdictOf(contract6, request.periodic(periodic({ frequency: 'MonthlyVariable' }))), []);
  });

  for (const [name, judged, path] of returned) {
    test(`only 1.3.11 returns ${name}`, () => {
      assert.deepEqual(answerVerdictOf(contract11, judged), []);
      assert.deepEqual(answerVerdictOf(contract6, judged), [
        `notable not-in-version body/${path} not-returned`,
      ]);
    });
  }

  test('only 1.3.11 requires the status of an authorisation', () => {
    const judged = answer('getAuthorisation', 200, { trustedBeneficiaryFlag: true });
    assert.deepEqual(answerVerdictOf(contract6, judged), []);
    assert.deepEqual(answerVerdictOf(contract11, judged), [
      'harmful required body/scaStatus client-may-fail',
    ]);
  });

  test('a payment shows the name of a bank with up to 70 characters in 1.3.6, and 140 in 1.3.11', () => {
    const judged = answer('getPayment', 200, single({ creditorAgentName: 'x'.repeat(100) }));
    assert.deepEqual(answerVerdictOf(contract6, judged), [
      'harmful max-length body/creditorAgentName client-may-fail',
    ]);
    assert.deepEqual(answerVerdictOf(contract11, judged), []);
  });

  test('the link of the embedded approach has its own name in the examples of 1.3.6', () => {
    const judged = answer('initiatePayment', 201, {
      ...initiated,
      _links: { startAuthenticationWithPsuAuthentication: { href: '/v1/payments/1/authorisations' } },
    });
    assert.deepEqual(answerVerdictOf(contract6, judged), []);
    assert.equal(answerVerdictOf(contract11, judged).length, 1);
  });

  test('agree on a valid bulk', () => {
    const judged = request.bulk(bulk({ payments: [bulkElement()] }));
    assert.deepEqual([...verdictOf(contract6, judged), ...verdictOf(contract11, judged)], []);
  });
});
