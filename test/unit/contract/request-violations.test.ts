import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import type { JudgedRequest } from '../../../src/contract/judge-request.ts';
import {
  bothContracts,
  bulk,
  bulkElement,
  harmfulOf,
  multipart,
  pain001,
  partsOf,
  periodic,
  request,
  single,
  standingOrder,
  transferXml,
} from '../../kit/judged.ts';

/** What is wrong with the request, the request, and how both versions must report it. */
type Row = readonly [name: string, judged: JudgedRequest, expected: string];

const amount = (changes: object) => ({ currency: 'EUR', amount: '123.50', ...changes });
const headers = (changes: Readonly<Record<string, string | undefined>>) =>
  request.single(undefined, { headers: changes });
const repeated = (judged: JudgedRequest, name: string, value: string): JudgedRequest => ({
  ...judged,
  headers: [...judged.headers, [name, value]],
});
const text = (body: string) => request.single(undefined, { body });
const sha256 = (value: string) => createHash('sha256').update(value).digest('base64');
const sha512 = (value: string) => createHash('sha512').update(value).digest('base64');
const signature =
  'keyId="SN=9FA1,CA=CN=Test",algorithm="rsa-sha256",headers="digest x-request-id tpp-redirect-uri",signature="QUJD"';
const body = JSON.stringify(single());
const signed = (changes: Readonly<Record<string, string | undefined>>) =>
  headers({
    Digest: `SHA-256=${sha256(body)}`,
    Signature: signature,
    'TPP-Signature-Certificate': 'QUJD',
    ...changes,
  });

const inHeaders: readonly Row[] = [
  ['no PSU-IP-Address', headers({ 'PSU-IP-Address': undefined }), 'required headers/PSU-IP-Address'],
  ['a host as PSU-IP-Address', headers({ 'PSU-IP-Address': 'psu.example' }), 'format headers/PSU-IP-Address'],
  ['a part of an address', headers({ 'PSU-IP-Address': '192.168.8' }), 'format headers/PSU-IP-Address'],
  [
    'an address with a port',
    headers({ 'PSU-IP-Address': '192.168.8.78:443' }),
    'format headers/PSU-IP-Address',
  ],
  ['an empty PSU-IP-Address', headers({ 'PSU-IP-Address': '' }), 'format headers/PSU-IP-Address'],
  [
    'yes as a preference',
    headers({ 'TPP-Redirect-Preferred': 'yes' }),
    'type headers/TPP-Redirect-Preferred',
  ],
  [
    'TRUE as a preference',
    headers({ 'TPP-Redirect-Preferred': 'TRUE' }),
    'type headers/TPP-Redirect-Preferred',
  ],
  [
    'a number as a preference',
    headers({ 'TPP-Explicit-Authorisation-Preferred': '1' }),
    'type headers/TPP-Explicit-Authorisation-Preferred',
  ],
  [
    'an empty preference',
    headers({ 'TPP-Rejection-NoFunds-Preferred': '' }),
    'type headers/TPP-Rejection-NoFunds-Preferred',
  ],
  ['a relative redirect', headers({ 'TPP-Redirect-URI': '/cb/ok' }), 'format headers/TPP-Redirect-URI'],
  [
    'a redirect with a space',
    headers({ 'TPP-Redirect-URI': 'https://tpp.example/a b' }),
    'format headers/TPP-Redirect-URI',
  ],
  [
    'redirect preferred without its URI',
    headers({ 'TPP-Redirect-URI': undefined }),
    'required-with headers/TPP-Redirect-URI',
  ],
  [
    'a malformed nok URI',
    headers({ 'TPP-Nok-Redirect-URI': 'tpp.example' }),
    'format headers/TPP-Nok-Redirect-URI',
  ],
  [
    'a malformed notification URI',
    headers({ 'TPP-Notification-URI': '<none>' }),
    'format headers/TPP-Notification-URI',
  ],
  ['a device that is no UUID', headers({ 'PSU-Device-ID': '4711' }), 'format headers/PSU-Device-ID'],
  ['a place without GEO:', headers({ 'PSU-Geo-Location': '52.5;13.1' }), 'pattern headers/PSU-Geo-Location'],
  [
    'a place with a comma',
    headers({ 'PSU-Geo-Location': 'GEO:52,5;13,1' }),
    'pattern headers/PSU-Geo-Location',
  ],
  ['an unknown method', headers({ 'PSU-Http-Method': 'FETCH' }), 'enum headers/PSU-Http-Method'],
  [
    'a preference twice',
    repeated(request.single(), 'tpp-redirect-preferred', 'false'),
    'repeated headers/TPP-Redirect-Preferred',
  ],
  ['no Content-Type', headers({ 'Content-Type': undefined }), 'content-type headers/Content-Type'],
  [
    'XML for a JSON product',
    headers({ 'Content-Type': 'application/xml' }),
    'content-type headers/Content-Type',
  ],
  [
    'a form',
    headers({ 'Content-Type': 'application/x-www-form-urlencoded' }),
    'content-type headers/Content-Type',
  ],
  [
    'problem+json',
    headers({ 'Content-Type': 'application/problem+json' }),
    'content-type headers/Content-Type',
  ],
  [
    'JSON in Latin-1',
    headers({ 'Content-Type': 'application/json; charset=iso-8859-1' }),
    'charset headers/Content-Type',
  ],
  [
    'a second charset',
    headers({ 'Content-Type': 'application/json; charset=utf-8; charset=utf-16' }),
    'charset headers/Content-Type',
  ],
  [
    'a body that is encoded',
    request.single(undefined, { headers: { 'Content-Encoding': 'gzip' }, body: 'xyz' }),
    'content-encoding headers/Content-Encoding',
  ],
  [
    'JSON for an XML product',
    request.xml(undefined, { headers: { 'Content-Type': 'application/json' } }),
    'content-type headers/Content-Type',
  ],
  [
    'text/xml for an XML product',
    request.xml(undefined, { headers: { 'Content-Type': 'text/xml' } }),
    'content-type headers/Content-Type',
  ],
  [
    'XML alone for a standing order in pain.001',
    request.multipart(pain001(), { headers: { 'Content-Type': 'application/xml' } }),
    'content-type headers/Content-Type',
  ],
  [
    'multipart for a bulk in pain.001',
    request.xml(
      multipart(),
      { headers: { 'Content-Type': 'multipart/form-data; boundary=AaB03x' } },
      'bulk-payments',
    ),
    'content-type headers/Content-Type',
  ],
  [
    'text to start an authorisation',
    request.authorisation({}, { headers: { 'Content-Type': 'text/plain' } }),
    'content-type headers/Content-Type',
  ],
  ['a hash of another body', headers({ Digest: `SHA-256=${sha256('other')}` }), 'digest headers/Digest'],
  ['a SHA-512 of another body', headers({ Digest: `SHA-512=${sha512('other')}` }), 'digest headers/Digest'],
  [
    'one right hash and a wrong one',
    headers({ Digest: `SHA-256=${sha256(body)},SHA-512=${sha512('other')}` }),
    'digest headers/Digest',
  ],
  ['a hash without its algorithm', headers({ Digest: sha256(body) }), 'pattern headers/Digest'],
  ['a hash in hexadecimal', headers({ Digest: `SHA-256=${'0f'.repeat(32)}` }), 'digest headers/Digest'],
  ['a signature without a digest', signed({ Digest: undefined }), 'required-with headers/Digest'],
  [
    'a signature without its certificate',
    signed({ 'TPP-Signature-Certificate': undefined }),
    'required-with headers/TPP-Signature-Certificate',
  ],
  ['a bare signature', signed({ Signature: 'QUJD' }), 'signature headers/Signature'],
  [
    'a signature without keyId',
    signed({ Signature: signature.replace(/keyId="[^"]*",/, '') }),
    'signature headers/Signature',
  ],
  ['MD5', signed({ Signature: signature.replace('rsa-sha256', 'md5') }), 'signature headers/Signature'],
  [
    'a signature that leaves out the digest',
    signed({ Signature: signature.replace('digest ', '') }),
    'signed-headers headers/Signature',
  ],
  [
    'a signature that leaves out the redirect',
    signed({ Signature: signature.replace(' tpp-redirect-uri', '') }),
    'signed-headers headers/Signature',
  ],
  [
    'a preference that is no boolean, to cancel',
    request.read('cancelPayment', { headers: { 'TPP-Redirect-Preferred': 'maybe' } }),
    'type headers/TPP-Redirect-Preferred',
  ],
  [
    'an address that is none, to read',
    request.read('getPaymentStatus', { headers: { 'PSU-IP-Address': 'unknown' } }),
    'format headers/PSU-IP-Address',
  ],
  ['a read with a body', request.read('getPayment', { body: '{}' }), 'unexpected-body body'],
  [
    'another product than at the initiation',
    request.read('getPayment', {
      initiatedAs: { paymentService: 'payments', paymentProduct: 'target-2-payments' },
    }),
    'path path/payment-product',
  ],
  [
    'another service than at the initiation',
    request.read('cancelPayment', {
      initiatedAs: { paymentService: 'bulk-payments', paymentProduct: 'sepa-credit-transfers' },
    }),
    'path path/payment-service',
  ],
];

const inSinglePayments: readonly Row[] = [
  ['no body', text(''), 'no-body body'],
  ['a text that is no JSON', text('Hello'), 'json body'],
  ['a cut text', text(body.slice(0, -1)), 'json body'],
  ['a comment', text(`${body}// end`), 'json body'],
  ['single quotes', text(body.replaceAll('"', "'")), 'json body'],
  ['a trailing comma', text(`${body.slice(0, -1)},}`), 'json body'],
  ['a list', text(`[${body}]`), 'type body'],
  ['a text', text('"payment"'), 'type body'],
  ['null', text('null'), 'type body'],
  ['a byte order mark', text(`\uFEFF${body}`), 'byte-order-mark body'],
  [
    'invalid UTF-8',
    request.single(undefined, { body: Buffer.from(body.replace('Merchant', 'M\xfcller'), 'latin1') }),
    'encoding body',
  ],
  ['UTF-16', request.single(undefined, { body: Buffer.from(body, 'utf16le') }), 'json body'],
  ['a key twice', text(body.replace('{', '{"creditorName":"Other",')), 'duplicate-key body'],
  [
    'a key twice in an object',
    text(body.replace('"currency"', '"currency":"USD","currency"')),
    'duplicate-key body/instructedAmount',
  ],
  [
    'a key twice, once escaped',
    text(body.replace('"currency"', '"\\u0063urrency":"USD","currency"')),
    'duplicate-key body/instructedAmount',
  ],
  ['no amount', request.single(single({ instructedAmount: undefined })), 'required body/instructedAmount'],
  ['no debtor', request.single(single({ debtorAccount: undefined })), 'required body/debtorAccount'],
  ['no creditor', request.single(single({ creditorAccount: undefined })), 'required body/creditorAccount'],
  ['no name', request.single(single({ creditorName: undefined })), 'required body/creditorName'],
  ['an empty name', request.single(single({ creditorName: '' })), 'pattern body/creditorName'],
  ['a long name', request.single(single({ creditorName: 'x'.repeat(71) })), 'max-length body/creditorName'],
  ['null as a name', request.single(single({ creditorName: null })), 'type body/creditorName'],
  ['a number as a name', request.single(single({ creditorName: 42 })), 'type body/creditorName'],
  [
    'a text as an amount',
    request.single(single({ instructedAmount: '123.50 EUR' })),
    'type body/instructedAmount',
  ],
  [
    'a number as a value',
    request.single(single({ instructedAmount: amount({ amount: 123.5 }) })),
    'type body/instructedAmount/amount',
  ],
  [
    'no currency',
    request.single(single({ instructedAmount: { amount: '1' } })),
    'required body/instructedAmount/currency',
  ],
  [
    'no value',
    request.single(single({ instructedAmount: { currency: 'EUR' } })),
    'required body/instructedAmount/amount',
  ],
  [
    'a decimal comma',
    request.single(single({ instructedAmount: amount({ amount: '1,50' }) })),
    'pattern body/instructedAmount/amount',
  ],
  [
    'a currency in the value',
    request.single(single({ instructedAmount: amount({ amount: 'EUR 12' }) })),
    'pattern body/instructedAmount/amount',
  ],
  [
    'an exponent',
    request.single(single({ instructedAmount: amount({ amount: '1e3' }) })),
    'pattern body/instructedAmount/amount',
  ],
  [
    '15 digits',
    request.single(single({ instructedAmount: amount({ amount: '123456789012345' }) })),
    'pattern body/instructedAmount/amount',
  ],
  [
    'a plus sign',
    request.single(single({ instructedAmount: amount({ amount: '+1.00' }) })),
    'pattern body/instructedAmount/amount',
  ],
  [
    'nothing before the dot',
    request.single(single({ instructedAmount: amount({ amount: '.50' }) })),
    'pattern body/instructedAmount/amount',
  ],
  [
    'a new line after the value',
    request.single(single({ instructedAmount: amount({ amount: '1.50\n' }) })),
    'pattern body/instructedAmount/amount',
  ],
  [
    'a negative amount',
    request.single(single({ instructedAmount: amount({ amount: '-1.50' }) })),
    'amount-positive body/instructedAmount/amount',
  ],
  [
    'zero',
    request.single(single({ instructedAmount: amount({ amount: '0.00' }) })),
    'amount-positive body/instructedAmount/amount',
  ],
  [
    'three digits of euros',
    request.single(single({ instructedAmount: amount({ amount: '1.234' }) })),
    'amount-digits body/instructedAmount/amount',
  ],
  [
    'digits of yen',
    request.single(single({ instructedAmount: { currency: 'JPY', amount: '100.5' } }), {
      product: 'cross-border-credit-transfers',
    }),
    'amount-digits body/instructedAmount/amount',
  ],
  [
    'EURO',
    request.single(single({ instructedAmount: amount({ currency: 'EURO' }) })),
    'pattern body/instructedAmount/currency',
  ],
  [
    'eur',
    request.single(single({ instructedAmount: amount({ currency: 'eur' }) })),
    'pattern body/instructedAmount/currency',
  ],
  [
    'a sign as a currency',
    request.single(single({ instructedAmount: amount({ currency: '€' }) })),
    'pattern body/instructedAmount/currency',
  ],
  [
    'a currency that does not exist',
    request.single(single({ instructedAmount: amount({ currency: 'XYZ' }) })),
    'currency body/instructedAmount/currency',
  ],
  [
    'wrong check digits',
    request.single(single({ creditorAccount: { iban: 'DE03100100109307118603' } })),
    'iban body/creditorAccount/iban',
  ],
  [
    'two exchanged digits',
    request.single(single({ debtorAccount: { iban: 'DE40100100103307118680' } })),
    'iban body/debtorAccount/iban',
  ],
  [
    'an IBAN that is too short',
    request.single(single({ creditorAccount: { iban: 'DE021001001093071186' } })),
    'iban body/creditorAccount/iban',
  ],
  [
    'an IBAN of no country',
    request.single(single({ creditorAccount: { iban: 'XX02100100109307118603' } })),
    'iban body/creditorAccount/iban',
  ],
  [
    'an IBAN with spaces',
    request.single(single({ creditorAccount: { iban: 'DE02 1001 0010 9307 1186 03' } })),
    'pattern body/creditorAccount/iban',
  ],
  [
    'an IBAN in small letters',
    request.single(single({ creditorAccount: { iban: 'de02100100109307118603' } })),
    'pattern body/creditorAccount/iban',
  ],
  [
    '40 characters',
    request.single(single({ creditorAccount: { iban: `DE02${'1'.repeat(36)}` } })),
    'pattern body/creditorAccount/iban',
  ],
  [
    'an empty account',
    request.single(single({ creditorAccount: {} })),
    'identification body/creditorAccount',
  ],
  [
    'only a currency',
    request.single(single({ creditorAccount: { currency: 'EUR' } })),
    'identification body/creditorAccount',
  ],
  [
    'a text as an account',
    request.single(single({ creditorAccount: 'DE02100100109307118603' })),
    'type body/creditorAccount',
  ],
  [
    'a long PAN',
    request.single(single({ debtorAccount: { pan: '4'.repeat(36) } })),
    'max-length body/debtorAccount/pan',
  ],
  [
    'a BBAN with hyphens',
    request.single(single({ creditorAccount: { bban: '12-34-56' } })),
    'pattern body/creditorAccount/bban',
  ],
  [
    'a currency of an account',
    request.single(single({ debtorAccount: { iban: 'DE40100100103307118608', currency: 'QQQ' } })),
    'currency body/debtorAccount/currency',
  ],
  ['a short BIC', request.single(single({ creditorAgent: 'AAAADEB' })), 'pattern body/creditorAgent'],
  [
    'a BIC in small letters',
    request.single(single({ creditorAgent: 'aaaadebbxxx' })),
    'pattern body/creditorAgent',
  ],
  [
    'a long reference',
    request.single(single({ endToEndIdentification: 'x'.repeat(36) })),
    'max-length body/endToEndIdentification',
  ],
  [
    'a long text',
    request.single(single({ remittanceInformationUnstructured: 'x'.repeat(141) })),
    'max-length body/remittanceInformationUnstructured',
  ],
  [
    'a list as the text',
    request.single(single({ remittanceInformationUnstructured: ['one'] })),
    'type body/remittanceInformationUnstructured',
  ],
  [
    'an address without a country',
    request.single(single({ creditorAddress: { townName: 'Berlin' } })),
    'required body/creditorAddress/country',
  ],
  [
    'a country in three letters',
    request.single(single({ creditorAddress: { country: 'DEU' } })),
    'pattern body/creditorAddress/country',
  ],
  [
    'a long street',
    request.single(single({ creditorAddress: { country: 'DE', streetName: 'x'.repeat(71) } })),
    'max-length body/creditorAddress/streetName',
  ],
  [
    'a beginning, although it is a single payment',
    request.single(single({ startDate: '2027-03-01' })),
    'not-in-service body/startDate',
  ],
  [
    'a schedule, although it is a single payment',
    request.single(periodic()),
    'not-in-service body/frequency',
  ],
  [
    'a time of execution',
    request.single(single({ requestedExecutionTime: '2027-03-01T10:00:00Z' })),
    'not-in-standard body/requestedExecutionTime',
  ],
  [
    'a long name of the bank',
    request.single(single({ creditorAgentName: 'x'.repeat(141) })),
    'max-length body/creditorAgentName',
  ],
  ['33 levels', text(`${'['.repeat(33)}${']'.repeat(33)}`), 'too-complex body'],
  [
    '300 keys',
    text(JSON.stringify(Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`k${at}`, 1])))),
    'too-complex body',
  ],
  [
    'more than 1 MiB',
    text(JSON.stringify(single({ creditorName: 'x'.repeat(1_048_576) }))),
    'too-large body',
  ],
];

const inBulks: readonly Row[] = [
  ['no payments', request.bulk(bulk({ payments: undefined })), 'required body/payments'],
  ['an empty list', request.bulk(bulk({ payments: [] })), 'min-items body/payments'],
  ['one payment instead of a list', request.bulk(bulk({ payments: bulkElement() })), 'type body/payments'],
  ['a text in the list', request.bulk(bulk({ payments: ['one'] })), 'type body/payments/#'],
  ['no debtor', request.bulk(bulk({ debtorAccount: undefined })), 'required body/debtorAccount'],
  [
    'a number as a preference',
    request.bulk(bulk({ batchBookingPreferred: 1 })),
    'type body/batchBookingPreferred',
  ],
  [
    'yes as a preference',
    request.bulk(bulk({ batchBookingPreferred: 'yes' })),
    'pattern body/batchBookingPreferred',
  ],
  [
    'a date that does not exist',
    request.bulk(bulk({ requestedExecutionDate: '2027-02-30' })),
    'format body/requestedExecutionDate',
  ],
  [
    'a German date',
    request.bulk(bulk({ requestedExecutionDate: '01.08.2027' })),
    'format body/requestedExecutionDate',
  ],
  [
    'a date and time as the date',
    request.bulk(bulk({ requestedExecutionDate: '2027-08-01T00:00:00Z' })),
    'format body/requestedExecutionDate',
  ],
  [
    'a time without its zone',
    request.bulk(bulk({ requestedExecutionTime: '2027-08-01T10:00:00' })),
    'format body/requestedExecutionTime',
  ],
  [
    'an element without an amount',
    request.bulk(bulk({}, { instructedAmount: undefined })),
    'required body/payments/#/instructedAmount',
  ],
  [
    'an element without a name',
    request.bulk(bulk({}, { creditorName: undefined })),
    'required body/payments/#/creditorName',
  ],
  [
    'an element without a creditor',
    request.bulk(bulk({}, { creditorAccount: {} })),
    'identification body/payments/#/creditorAccount',
  ],
  [
    'wrong check digits in an element',
    request.bulk(bulk({}, { creditorAccount: { iban: 'DE03100100109307118603' } })),
    'iban body/payments/#/creditorAccount/iban',
  ],
  [
    'zero in an element',
    request.bulk(bulk({}, { instructedAmount: amount({ amount: '0' }) })),
    'amount-positive body/payments/#/instructedAmount/amount',
  ],
  [
    'a currency that does not exist in an element',
    request.bulk(bulk({}, { instructedAmount: amount({ currency: 'ABC' }) })),
    'currency body/payments/#/instructedAmount/currency',
  ],
  [
    'a debtor in an element',
    request.bulk(bulk({}, { debtorAccount: { iban: 'DE40100100103307118608' } })),
    'not-in-service body/payments/#/debtorAccount',
  ],
  [
    'a date in an element',
    request.bulk(bulk({}, { requestedExecutionDate: '2027-08-01' })),
    'not-in-service body/payments/#/requestedExecutionDate',
  ],
  ['a frequency', request.bulk(bulk({ frequency: 'Monthly' })), 'not-in-service body/frequency'],
  [
    'wrong check digits of the debtor',
    request.bulk(bulk({ debtorAccount: { iban: 'DE41100100103307118608' } })),
    'iban body/debtorAccount/iban',
  ],
  [
    'a key twice in an element',
    request.bulk(undefined, {
      body: JSON.stringify(bulk()).replace('"creditorName"', '"creditorName":"x","creditorName"'),
    }),
    'duplicate-key body/payments/#',
  ],
];

const inStandingOrders: readonly Row[] = [
  ['no beginning', request.periodic(periodic({ startDate: undefined })), 'required body/startDate'],
  ['no frequency', request.periodic(periodic({ frequency: undefined })), 'required body/frequency'],
  ['an unknown frequency', request.periodic(periodic({ frequency: 'Hourly' })), 'enum body/frequency'],
  [
    'a frequency in small letters',
    request.periodic(periodic({ frequency: 'monthly' })),
    'enum body/frequency',
  ],
  ['an unknown rule', request.periodic(periodic({ executionRule: 'next' })), 'enum body/executionRule'],
  ['day 32', request.periodic(periodic({ dayOfExecution: '32' })), 'pattern body/dayOfExecution'],
  ['day 0', request.periodic(periodic({ dayOfExecution: '0' })), 'pattern body/dayOfExecution'],
  ['a number as the day', request.periodic(periodic({ dayOfExecution: 1 })), 'type body/dayOfExecution'],
  ['February 29 of 2027', request.periodic(periodic({ startDate: '2027-02-29' })), 'format body/startDate'],
  ['a date without hyphens', request.periodic(periodic({ startDate: '20270301' })), 'format body/startDate'],
  [
    'an end before the beginning',
    request.periodic(periodic({ endDate: '2027-02-01' })),
    'end-before-start body/endDate',
  ],
  ['a malformed end', request.periodic(periodic({ endDate: 'never' })), 'format body/endDate'],
  [
    'a negative amount',
    request.periodic(periodic({ instructedAmount: amount({ amount: '-5' }) })),
    'amount-positive body/instructedAmount/amount',
  ],
  [
    'months without MonthlyVariable',
    request.periodic(periodic({ monthsOfExecution: ['1', '4'] })),
    monthsOf6And11(),
  ],
  ['no creditor', request.periodic(periodic({ creditorAccount: {} })), 'identification body/creditorAccount'],
];

/** 1.3.6 does not have the field, and 1.3.11 has it for one frequency only: see version-differences.test.ts. */
function monthsOf6And11(): string {
  return '* body/monthsOfExecution';
}

const inXml: readonly Row[] = [
  [
    'another charset than its bytes have',
    request.xml(undefined, { headers: { 'Content-Type': 'application/xml; charset=utf-7' } }),
    'charset headers/Content-Type',
  ],
  ['a text', request.xml('Hello'), 'xml xml'],
  ['JSON', request.xml(body), 'xml xml'],
  ['a cut document', request.xml(pain001().slice(0, -20)), 'xml xml'],
  ['crossed tags', request.xml(pain001('<a><b></a></b>')), 'xml xml'],
  ['two roots', request.xml(`${pain001()}<Document/>`), 'xml xml'],
  ['an attribute twice', request.xml(pain001('<a x="1" x="2"/>')), 'xml xml'],
  ['an attribute without quotes', request.xml(pain001('<a x=1/>')), 'xml xml'],
  ['an undeclared prefix', request.xml(pain001('<p:a/>')), 'xml xml'],
  ['an undeclared entity', request.xml(pain001('<a>&nbsp;</a>')), 'xml xml'],
  ['an ampersand', request.xml(pain001('<a>M & M</a>')), 'xml xml'],
  ['a control character', request.xml(pain001('<a>\u0001</a>')), 'xml xml'],
  ['a comment with two hyphens', request.xml(pain001('<!-- a -- b -->')), 'xml xml'],
  ['a declaration that is not first', request.xml(`\n${pain001()}`), 'xml xml'],
  ['a DOCTYPE', request.xml(pain001().replace('?>', '?><!DOCTYPE Document>')), 'doctype xml'],
  [
    'an external entity',
    request.xml(
      pain001('<a>&x;</a>').replace(
        '?>',
        '?><!DOCTYPE Document [<!ENTITY x SYSTEM "file:///etc/hostname">]>',
      ),
    ),
    'doctype xml',
  ],
  ['pain.008', request.xml(pain001().replace('pain.001.001.03', 'pain.008.001.02')), 'message-type xml'],
  ['no namespace', request.xml(pain001().replace(/ xmlns="[^"]*"/, '')), 'message-type xml'],
  ['another root', request.xml(pain001().replaceAll('Document', 'Payment')), 'message-type xml'],
  [
    'another message',
    request.xml(pain001().replaceAll('CstmrCdtTrfInitn', 'CstmrDrctDbtInitn')),
    'message-type xml',
  ],
  ['65 levels', request.xml(pain001(`${'<a>'.repeat(65)}${'</a>'.repeat(65)}`)), 'too-complex xml'],
  ['UTF-16 declared', request.xml(pain001().replace('UTF-8', 'UTF-16')), 'encoding xml'],
  [
    'invalid UTF-8',
    request.xml(undefined, { body: Buffer.from(pain001('<Nm>M\xfcller</Nm>'), 'latin1') }),
    'encoding xml',
  ],
  [
    'wrong check digits',
    request.xml(pain001(transferXml(undefined, 'DE03100100109307118603'))),
    'iban xml/IBAN',
  ],
  ['no IBAN in IBAN', request.xml(pain001(transferXml(undefined, 'none'))), 'pattern xml/IBAN'],
  [
    'zero',
    request.xml(pain001(transferXml('<InstdAmt Ccy="EUR">0</InstdAmt>'))),
    'amount-positive xml/InstdAmt',
  ],
  [
    'a decimal comma',
    request.xml(pain001(transferXml('<InstdAmt Ccy="EUR">1,50</InstdAmt>'))),
    'pattern xml/InstdAmt',
  ],
  ['a German date', request.xml(pain001().replace('2027-02-15', '15.02.2027')), 'format xml/ReqdExctnDt'],
  [
    'three digits of euros',
    request.xml(pain001(transferXml('<InstdAmt Ccy="EUR">1.505</InstdAmt>'))),
    'amount-digits xml/InstdAmt',
  ],
  [
    'no currency',
    request.xml(pain001(transferXml('<InstdAmt>1.50</InstdAmt>'))),
    'required xml/InstdAmt/Ccy',
  ],
  [
    'a currency that does not exist',
    request.xml(pain001(transferXml('<InstdAmt Ccy="XYZ">1</InstdAmt>')), {}, 'bulk-payments'),
    'currency xml/InstdAmt/Ccy',
  ],
  [
    'wrong check digits in a bulk',
    request.xml(pain001(transferXml(undefined, 'DE03100100109307118603')), {}, 'bulk-payments'),
    'iban xml/IBAN',
  ],
];

const inParts: readonly Row[] = [
  [
    'no boundary',
    request.multipart(undefined, { headers: { 'Content-Type': 'multipart/form-data' } }),
    'boundary body',
  ],
  [
    'another boundary',
    request.multipart(undefined, { headers: { 'Content-Type': 'multipart/form-data; boundary=x' } }),
    'boundary body',
  ],
  ['no closing delimiter', request.multipart(multipart(undefined, '')), 'boundary body'],
  [
    'new lines without carriage returns',
    request.multipart(multipart().replaceAll('\r\n', '\n')),
    'boundary body',
  ],
  ['no part with pain.001', request.multipart(multipart(partsOf().slice(1))), 'required parts/xml_sct'],
  [
    'no part with JSON',
    request.multipart(multipart(partsOf().slice(0, 1))),
    'required parts/json_standingorderType',
  ],
  ['a part twice', request.multipart(multipart([...partsOf(), ...partsOf()])), 'repeated parts/xml_sct'],
  [
    'no beginning',
    request.multipart(multipart(partsOf(standingOrder({ startDate: undefined })))),
    'required parts/json_standingorderType/startDate',
  ],
  [
    'an unknown frequency',
    request.multipart(multipart(partsOf(standingOrder({ frequency: 'Never' })))),
    'enum parts/json_standingorderType/frequency',
  ],
  [
    'an end before the beginning',
    request.multipart(multipart(partsOf(standingOrder({ endDate: '2026-01-01' })))),
    'end-before-start parts/json_standingorderType/endDate',
  ],
  [
    'a DOCTYPE',
    request.multipart(multipart(partsOf(undefined, pain001().replace('?>', '?><!DOCTYPE a>')))),
    'doctype parts/xml_sct',
  ],
  ['broken XML', request.multipart(multipart(partsOf(undefined, '<Document>'))), 'xml parts/xml_sct'],
  [
    'exchanged parts',
    request.multipart(
      multipart([
        ['xml_sct', 'application/xml', '{}'],
        ['json_standingorderType', 'application/json', pain001()],
      ]),
    ),
    'json parts/json_standingorderType',
  ],
];

/** @param requestWith a start or an update with this body */
const inSteps = (requestWith: typeof request.update): readonly Row[] => [
  ['a list', requestWith('[]'), 'type body'],
  ['broken JSON', requestWith('{'), 'json body'],
  ['no password', requestWith({ psuData: {} }), 'min-properties body/psuData'],
  ['a text as psuData', requestWith({ psuData: 'secret' }), 'type body/psuData'],
  ['a number as the password', requestWith({ psuData: { password: 1234 } }), 'type body/psuData/password'],
  [
    'a long method',
    requestWith({ authenticationMethodId: 'x'.repeat(36) }),
    'max-length body/authenticationMethodId',
  ],
  ['an empty code', requestWith({ scaAuthenticationData: '' }), 'pattern body/scaAuthenticationData'],
  ['a number as the code', requestWith({ scaAuthenticationData: 123456 }), 'type body/scaAuthenticationData'],
];

const groups: Readonly<Record<string, readonly Row[]>> = {
  'headers and paths': inHeaders,
  'single payments': inSinglePayments,
  'bulk payments': inBulks,
  'standing orders': inStandingOrders,
  'XML documents': inXml,
  'multipart bodies': inParts,
  'starts of authorisations': inSteps(request.authorisation),
  'updates of authorisations': [
    ...inSteps(request.update),
    ['an empty confirmation', request.update({ confirmationCode: '' }), 'pattern body/confirmationCode'],
    ['a number as the confirmation', request.update({ confirmationCode: 123 }), 'type body/confirmationCode'],
  ],
};

describe('the contract of a request', () => {
  test('accepts the requests that the violations start from', () => {
    for (const contract of bothContracts)
      for (const judged of [
        ...[request.single(), request.bulk(), request.periodic(), request.xml(), request.multipart()],
        ...[
          request.authorisation(),
          request.update({ confirmationCode: '1' }),
          request.read(),
          request.read('cancelPayment'),
          signed({}),
        ],
      ])
        assert.deepEqual(harmfulOf(contract, judged), [], judged.paymentService);
  });

  test('has examples of at least 120 violations', () => {
    assert.ok(Object.values(groups).flat().length >= 120, `${Object.values(groups).flat().length}`);
  });

  for (const [name, rows] of Object.entries(groups)) {
    test(`reports violations in ${name} as harmful in both versions`, () => {
      const missed = rows.flatMap(([what, judged, expected]) =>
        bothContracts
          .filter((contract) => !harmfulOf(contract, judged).some((found) => isExpected(found, expected)))
          .map(
            (contract) =>
              `${contract.version} ${what}: ${expected}, but ${harmfulOf(contract, judged).join(', ')}`,
          ),
      );
      assert.deepEqual(missed, []);
    });
  }
});

/** A `*` stands for any rule. */
const isExpected = (found: string, expected: string) =>
  expected.startsWith('* ') ? found.endsWith(expected.slice(1)) : found === expected;
