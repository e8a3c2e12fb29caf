/**
 * Violations of the standard, derived from its text and not from the schemas of the gateway: what the contract guard does with
 * each of them under 1.3.6 and 1.3.11, in `report` and in `enforce`.
 */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, describe, test } from 'node:test';
import { z } from 'zod';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { callAdminApi } from '../kit/admin-api.ts';
import { call, jsonOf, type Reply } from '../kit/call.ts';
import {
  authorise,
  authoriseWith,
  bulk,
  bulkElement,
  bulkTransfers,
  bulkWith,
  bulkXml,
  type Changes,
  type ContractRequest,
  callOf,
  cancel,
  creditorAccount,
  initiated,
  jsonPart,
  multipart,
  multipartBody,
  pain001,
  partText,
  periodic,
  post,
  read,
  single,
  singleBody,
  standingOrder,
  standingOrders,
  transfers,
  xml,
  xmlPart,
} from '../kit/contract-requests.ts';
import { type GatewayUnderTest, startBank, startGateway } from '../kit/gateway.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';
import { until } from '../kit/within.ts';

/** `reported` is sent to the bank in both modes, and listed in the report. */
type Outcome = 'refused' | 'reported' | 'valid';

interface Violation {
  readonly name: string;
  readonly request: ContractRequest;
  readonly under136: Outcome;
  readonly under1311: Outcome;
  /** Where and why the report lists it: `path (rule)`. */
  readonly listed: RegExp;
}

const refused = (name: string, request: ContractRequest, listed: RegExp): Violation => ({
  ...{ name, request, listed },
  under136: 'refused',
  under1311: 'refused',
});
const reported = (name: string, request: ContractRequest, listed: RegExp): Violation => ({
  ...{ name, request, listed },
  under136: 'reported',
  under1311: 'reported',
});
const differs = (
  name: string,
  request: ContractRequest,
  [under136, under1311]: readonly [Outcome, Outcome],
  listed: RegExp,
): Violation => ({ name, request, under136, under1311, listed });

const amount = (currency: unknown, value: unknown) => ({ instructedAmount: { currency, amount: value } });
const singleText = JSON.stringify(singleBody);
const hash = (algorithm: 'sha256' | 'sha512', text: string) =>
  createHash(algorithm).update(text).digest('base64');
const signed: Changes = {
  Signature:
    'keyId="SN=9FA1,CA=CN=Trust%20Center,C=DE",algorithm="rsa-sha256",headers="digest x-request-id tpp-redirect-uri",signature="cXNlYWwtY2FuYXJ5"',
  'TPP-Signature-Certificate': 'UVNlYWxDYW5hcnlDZXJ0aWZpY2F0ZQ==',
};
const withDigest = (digest: string, more: Changes = signed) =>
  post(transfers, singleText, { ...more, Digest: digest });
const otherText = 'another body';

const headerViolations: readonly Violation[] = [
  refused('an initiation without PSU-IP-Address', single({}, { 'PSU-IP-Address': null }), /psu-ip-address/i),
  refused(
    'a PSU-IP-Address that is a host name',
    single({}, { 'PSU-IP-Address': 'laptop.home.example' }),
    /psu-ip-address/i,
  ),
  refused(
    'a PSU-IP-Address with a number above 255',
    single({}, { 'PSU-IP-Address': '192.168.300.7' }),
    /psu-ip-address/i,
  ),
  reported(
    'an IPv6 address as PSU-IP-Address',
    single({}, { 'PSU-IP-Address': '2001:db8::8a2e:370:7334' }),
    /psu-ip-address/i,
  ),
  refused(
    'a preference that is no boolean',
    single({}, { 'TPP-Redirect-Preferred': 'perhaps' }),
    /tpp-redirect-preferred/i,
  ),
  refused(
    'an explicit authorisation preferred with a number',
    periodic({}, { 'TPP-Explicit-Authorisation-Preferred': '1' }),
    /tpp-explicit-authorisation-preferred/i,
  ),
  refused(
    'a redirect URI with spaces',
    bulk({}, { 'TPP-Redirect-URI': 'merchant callback page' }),
    /tpp-redirect-uri/i,
  ),
  refused(
    'a device id that is no UUID',
    single({}, { 'PSU-Device-ID': 'telephone-of-erika' }),
    /psu-device-id/i,
  ),
  refused(
    'a position without the prefix GEO',
    single({}, { 'PSU-Geo-Location': '52.506931;13.144558' }),
    /psu-geo-location/i,
  ),
  refused(
    'an HTTP method of the payer that does not exist',
    single({}, { 'PSU-Http-Method': 'FETCHING' }),
    /psu-http-method/i,
  ),
  differs(
    'a decoupled preference that is no boolean',
    single({}, { 'TPP-Decoupled-Preferred': 'sometimes' }),
    ['reported', 'refused'],
    /tpp-decoupled-preferred/i,
  ),
  differs(
    'a preference for the decoupled approach',
    single({}, { 'TPP-Decoupled-Preferred': 'true' }),
    ['reported', 'valid'],
    /tpp-decoupled-preferred/i,
  ),
  refused(
    'a cancellation with a preference that is no boolean',
    cancel(`${transfers}/{single}`, { 'TPP-Redirect-Preferred': 'perhaps' }),
    /tpp-redirect-preferred/i,
  ),
  refused(
    'a read with an IP address that is none',
    read(`${transfers}/{single}`, { 'PSU-IP-Address': 'laptop.home.example' }),
    /psu-ip-address/i,
  ),
  refused(
    'a Signature without TPP-Signature-Certificate',
    withDigest(`SHA-256=${hash('sha256', singleText)}`, { ...signed, 'TPP-Signature-Certificate': null }),
    /tpp-signature-certificate/i,
  ),
  refused('a Signature without Digest', single({}, signed), /digest/i),
  reported(
    'a Digest without Signature',
    withDigest(`SHA-256=${hash('sha256', singleText)}`, {}),
    /signature|digest/i,
  ),
];

const digestViolations: readonly Violation[] = [
  refused('a SHA-256 digest of another body', withDigest(`SHA-256=${hash('sha256', otherText)}`), /digest/i),
  refused('a SHA-512 digest of another body', withDigest(`SHA-512=${hash('sha512', otherText)}`), /digest/i),
  refused(
    'two digests of which the second is wrong',
    withDigest(`SHA-256=${hash('sha256', singleText)},SHA-512=${hash('sha512', otherText)}`),
    /digest/i,
  ),
  refused(
    'a digest that is cut off',
    withDigest(`SHA-256=${hash('sha256', singleText).slice(0, 20)}`),
    /digest/i,
  ),
  refused(
    'a digest of no body',
    withDigest('SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='),
    /digest/i,
  ),
  reported('a digest with an unknown algorithm', withDigest('MD5=rL0Y20zC+Fzt72VPzMSk2A=='), /digest/i),
];

const contentTypeViolations: readonly Violation[] = [
  refused('a payment in JSON without Content-Type', single({}, { 'Content-Type': null }), /content-type/i),
  differs(
    'a payment in JSON sent as text/plain',
    single({}, { 'Content-Type': 'text/plain' }),
    ['refused', 'reported'],
    /content-type/i,
  ),
  refused(
    'a payment in JSON sent as application/xml',
    single({}, { 'Content-Type': 'application/xml' }),
    /content-type/i,
  ),
  refused(
    'a payment in XML to a product in JSON',
    post(transfers, pain001, { 'Content-Type': 'application/xml' }),
    /content-type/i,
  ),
  refused(
    'a payment in JSON to a product in pain.001',
    post('/payments/pain.001-sepa-credit-transfers', singleText),
    /content-type/i,
  ),
  refused(
    'a form',
    post(transfers, 'amount=123.50&creditor=Erika+Mustermann', {
      'Content-Type': 'application/x-www-form-urlencoded',
    }),
    /content-type/i,
  ),
  refused(
    'a bulk in XML to a product in JSON',
    post(bulkTransfers, pain001, { 'Content-Type': 'application/xml' }),
    /content-type/i,
  ),
  refused(
    'a bulk in JSON to a product in pain.001',
    post(
      '/bulk-payments/pain.001-sepa-credit-transfers',
      JSON.stringify({ debtorAccount: singleBody.debtorAccount, payments: [bulkElement] }),
    ),
    /content-type/i,
  ),
  refused(
    'a standing order in XML that is not multipart',
    post('/periodic-payments/pain.001-sepa-credit-transfers', pain001, { 'Content-Type': 'application/xml' }),
    /content-type/i,
  ),
  refused(
    'a standing order in JSON to a product in pain.001',
    post(
      '/periodic-payments/pain.001-sepa-credit-transfers',
      JSON.stringify({ ...singleBody, ...standingOrder }),
    ),
    /content-type/i,
  ),
  refused(
    'multipart for a single payment in pain.001',
    { ...multipart([xmlPart, jsonPart()]), path: '/payments/pain.001-sepa-credit-transfers' },
    /content-type/i,
  ),
  refused(
    'an authorisation in XML',
    authoriseWith('<psuData/>', { 'Content-Type': 'application/xml' }),
    /content-type/i,
  ),
];

const singleViolations: readonly Violation[] = [
  refused('a payment without amount', single({ instructedAmount: undefined }), /instructedAmount/),
  refused('a payment without creditor name', single({ creditorName: undefined }), /creditorName/),
  refused('a payment without creditor account', single({ creditorAccount: undefined }), /creditorAccount/),
  refused('a payment without debtor account', single({ debtorAccount: undefined }), /debtorAccount/),
  refused(
    'an amount without currency',
    single({ instructedAmount: { amount: '123.50' } }),
    /instructedAmount\/currency/,
  ),
  refused('an amount as a number', single(amount('EUR', 123.5)), /instructedAmount\/amount/),
  refused('an amount of zero', single(amount('EUR', '0')), /instructedAmount\/amount/),
  refused('an amount of zero with digits', single(amount('EUR', '0.00')), /instructedAmount\/amount/),
  refused('a negative amount', single(amount('EUR', '-5.00')), /instructedAmount\/amount/),
  refused('an amount with a comma', single(amount('EUR', '1234,50')), /instructedAmount\/amount/),
  refused(
    'an amount with thousands separators',
    single(amount('EUR', '1.234.567')),
    /instructedAmount\/amount/,
  ),
  refused('an amount with an exponent', single(amount('EUR', '12e3')), /instructedAmount\/amount/),
  refused(
    'an amount with a newline behind it',
    single(amount('EUR', '123.50\n')),
    /instructedAmount\/amount/,
  ),
  refused('an amount of 15 digits', single(amount('EUR', '123456789012345')), /instructedAmount\/amount/),
  refused(
    'an amount in euros with three digits',
    single(amount('EUR', '12.345')),
    /instructedAmount\/amount/,
  ),
  refused('an amount in yen with digits', single(amount('JPY', '100.50')), /instructedAmount\/amount/),
  refused('a currency of four letters', single(amount('EURO', '123.50')), /instructedAmount\/currency/),
  refused('a currency in small letters', single(amount('eur', '123.50')), /instructedAmount\/currency/),
  refused('a currency that does not exist', single(amount('QQQ', '123.50')), /instructedAmount\/currency/),
  refused('a currency of the past', single(amount('DEM', '123.50')), /instructedAmount\/currency/),
  refused(
    'wrong check digits of the creditor',
    single({ creditorAccount: { iban: 'DE03100100109307118603' } }),
    /creditorAccount\/iban/,
  ),
  refused(
    'wrong check digits of the debtor',
    single({ debtorAccount: { iban: 'DE41100100103307118608' } }),
    /debtorAccount\/iban/,
  ),
  refused(
    'an IBAN of a country that has none',
    single({ creditorAccount: { iban: 'US64100100109307118603' } }),
    /creditorAccount\/iban/,
  ),
  refused(
    'an IBAN that is too long for its country',
    single({ creditorAccount: { iban: 'DE021001001093071186031' } }),
    /creditorAccount\/iban/,
  ),
  refused(
    'an IBAN with spaces',
    single({ creditorAccount: { iban: 'DE02 1001 0010 9307 1186 03' } }),
    /creditorAccount\/iban/,
  ),
  refused('an account as a text', single({ creditorAccount: 'DE02100100109307118603' }), /creditorAccount/),
  refused('an account without anything', single({ creditorAccount: {} }), /creditorAccount/),
  refused(
    'an account with only a currency',
    single({ creditorAccount: { currency: 'EUR' } }),
    /creditorAccount/,
  ),
  differs(
    'an account with only another identification',
    single({ creditorAccount: { other: { identification: 'Konto 4711-0815' } } }),
    ['refused', 'valid'],
    /creditorAccount/,
  ),
  refused(
    'an account with a currency of four letters',
    single({ creditorAccount: { ...creditorAccount, currency: 'EURO' } }),
    /creditorAccount\/currency/,
  ),
  differs(
    'an account with its type',
    single({ debtorAccount: { ...singleBody.debtorAccount, cashAccountType: 'CACC' } }),
    ['reported', 'valid'],
    /debtorAccount\/(cashAccountType|\*)/,
  ),
  refused(
    'a creditor name of 71 characters',
    single({ creditorName: 'Überweisung'.padEnd(71, 'x') }),
    /creditorName/,
  ),
  differs(
    'a creditor agent name of 100 characters',
    single({ creditorAgentName: 'Sparbank'.padEnd(100, 'x') }),
    ['refused', 'valid'],
    /creditorAgentName/,
  ),
  refused(
    'a creditor agent name of 141 characters',
    single({ creditorAgentName: 'Sparbank'.padEnd(141, 'x') }),
    /creditorAgentName/,
  ),
  refused(
    'a remittance information of 141 characters',
    single({ remittanceInformationUnstructured: 'Rechnung'.padEnd(141, 'x') }),
    /remittanceInformationUnstructured/,
  ),
  refused(
    'an end-to-end identification of 36 characters',
    single({ endToEndIdentification: 'Bestellung'.padEnd(36, '7') }),
    /endToEndIdentification/,
  ),
  refused('a creditor agent that is no BIC', single({ creditorAgent: 'SPARKASSE-KOELN' }), /creditorAgent/),
  refused(
    'an address without country',
    single({ creditorAddress: { townName: 'Buxtehude' } }),
    /creditorAddress\/country/,
  ),
  refused(
    'an address with the name of a country',
    single({ creditorAddress: { country: 'Deutschland' } }),
    /creditorAddress\/country/,
  ),
  reported('an unknown field', single({ creditorNickname: 'Sonnenscheinchen' }), /body\/\*/),
  differs(
    'an execution date that does not exist',
    single({ requestedExecutionDate: '2031-02-30' }),
    ['refused', 'refused'],
    /requestedExecutionDate/,
  ),
  differs(
    'an execution date',
    single({ requestedExecutionDate: '2031-02-03' }),
    ['refused', 'valid'],
    /requestedExecutionDate/,
  ),
  differs(
    'an execution date in the past',
    single({ requestedExecutionDate: '2019-02-03' }),
    ['refused', 'reported'],
    /requestedExecutionDate/,
  ),
  differs(
    'a charge bearer that does not exist',
    single({ chargeBearer: 'PAYER-PAYS' }),
    ['reported', 'refused'],
    /chargeBearer/,
  ),
  differs('a charge bearer', single({ chargeBearer: 'SLEV' }), ['reported', 'valid'], /chargeBearer/),
  differs(
    'a purpose code that is none',
    single({ purposeCode: 'LOTTERY-WIN' }),
    ['reported', 'refused'],
    /purposeCode/,
  ),
  differs(
    'an ultimate debtor of 71 characters',
    single({ ultimateDebtor: 'Enkelkind'.padEnd(71, 'x') }),
    ['reported', 'refused'],
    /ultimateDebtor/,
  ),
  differs(
    'structured remittance information without reference',
    single({ remittanceInformationStructured: { referenceType: 'Rechnungsart' } }),
    ['reported', 'refused'],
    /remittanceInformationStructured/,
  ),
  differs(
    'structured remittance information as texts',
    single({ remittanceInformationStructuredArray: ['Rechnung 4712', 'Rechnung 4713'] }),
    ['reported', 'refused'],
    /remittanceInformationStructuredArray/,
  ),
];

const jsonViolations: readonly Violation[] = [
  refused('JSON with a comma at the end', post(transfers, `${singleText.slice(0, -1)},}`), /body/),
  refused('JSON that is cut off', post(transfers, singleText.slice(0, -30)), /body/),
  refused('JSON with a comment', post(transfers, `// Zahlung an den Bäcker\n${singleText}`), /body/),
  refused('JSON with single quotes', post(transfers, singleText.replaceAll('"', "'")), /body/),
  refused('two JSON documents', post(transfers, singleText + singleText), /body/),
  refused('JSON with bytes that are not UTF-8', post(transfers, Buffer.from(singleText, 'latin1')), /body/),
  refused('a list in place of a payment', post(transfers, `[${singleText}]`), /body/),
  refused('null in place of a payment', post(transfers, 'null'), /body/),
  refused('a payment in a text', post(transfers, JSON.stringify(singleText)), /body/),
  refused('an initiation without body', post(transfers, undefined), /body/),
  refused(
    'the same key twice',
    post(transfers, singleText.replace('{', '{"creditorName":"Erika Mustermann",')),
    /body.*duplicate/i,
  ),
  refused(
    'the same key twice, deep',
    post(transfers, singleText.replace('"amount":', '"amount":"9999.99","amount":')),
    /instructedAmount.*duplicate/i,
  ),
  refused(
    'the same key twice, once escaped',
    post(transfers, singleText.replace('"amount":', '"am\\u006funt":"9999.99","amount":')),
    /instructedAmount.*duplicate/i,
  ),
  refused(
    'an unknown key twice',
    post(transfers, singleText.replace('{', '{"lieblingsfarbe":"dunkelblau","lieblingsfarbe":"hellblau",')),
    /body.*duplicate/i,
  ),
];

const bulkViolations: readonly Violation[] = [
  refused('a bulk without payments', bulk({ payments: undefined }), /body\/payments/),
  refused('a bulk with a payment in place of the list', bulk({ payments: bulkElement }), /body\/payments/),
  refused('a bulk without debtor account', bulk({ debtorAccount: undefined }), /debtorAccount/),
  refused(
    'a bulk element without creditor name',
    bulkWith({ creditorName: undefined }),
    /payments\/#\/creditorName/,
  ),
  refused(
    'a bulk element without amount',
    bulkWith({ instructedAmount: undefined }),
    /payments\/#\/instructedAmount/,
  ),
  refused(
    'a bulk element with wrong check digits',
    bulkWith({ creditorAccount: { iban: 'FR1520041010050500013M02606' } }),
    /payments\/#\/creditorAccount\/iban/,
  ),
  refused(
    'a bulk element with an amount of zero',
    bulkWith(amount('EUR', '0.00')),
    /payments\/#\/instructedAmount\/amount/,
  ),
  refused(
    'a bulk element with an account without anything',
    bulkWith({ creditorAccount: {} }),
    /payments\/#\/creditorAccount/,
  ),
  refused(
    'a bulk element that is a text',
    bulk({ payments: [bulkElement, 'Gärtnerei Abendrot'] }),
    /payments\/#/,
  ),
  refused(
    'a bulk element with a currency that does not exist',
    bulkWith(amount('QQQ', '1.00')),
    /payments\/#\/instructedAmount\/currency/,
  ),
  refused('the body of a single payment as a bulk', post(bulkTransfers, singleText), /body\/payments/),
  refused(
    'batch booking preferred with a word',
    bulk({ batchBookingPreferred: 'gerne doch' }),
    /batchBookingPreferred/,
  ),
  reported(
    'batch booking preferred as in the published example',
    bulk({ batchBookingPreferred: 'true' }),
    /batchBookingPreferred/,
  ),
  refused(
    'the execution date of a bulk in another format',
    bulk({ requestedExecutionDate: '01.12.2031' }),
    /requestedExecutionDate/,
  ),
  // Commented out in the files of both versions.
  reported(
    'a payment information id',
    bulk({ paymentInformationId: 'Gehaltslauf-4711' }),
    /paymentInformationId/,
  ),
  differs(
    'a debtor name of a bulk',
    bulk({ debtorName: 'Erika Mustermann' }),
    ['reported', 'valid'],
    /debtorName|body\/\*/,
  ),
  differs(
    'a debtor name of a bulk of 71 characters',
    bulk({ debtorName: 'Erika'.padEnd(71, 'x') }),
    ['reported', 'refused'],
    /debtorName|body\/\*/,
  ),
  differs(
    'a bulk element with a charge bearer that does not exist',
    bulkWith({ chargeBearer: 'PAYER-PAYS' }),
    ['reported', 'refused'],
    /payments\/#\/(chargeBearer|\*)/,
  ),
  differs(
    'a bulk element with a creditor agent name of 71 characters',
    bulkWith({ creditorAgentName: 'Sparbank'.padEnd(71, 'x') }),
    ['refused', 'valid'],
    /payments\/#\/creditorAgentName/,
  ),
  refused(
    'the same key twice in a bulk element',
    post(
      bulkTransfers,
      JSON.stringify({ debtorAccount: singleBody.debtorAccount, payments: [bulkElement] }).replace(
        '"creditorName":',
        '"creditorName":"Erika Mustermann","creditorName":',
      ),
    ),
    /payments.*duplicate/i,
  ),
];

const periodicViolations: readonly Violation[] = [
  refused('a standing order without start', periodic({ startDate: undefined }), /startDate/),
  refused('a standing order without frequency', periodic({ frequency: undefined }), /frequency/),
  refused(
    'the body of a single payment as a standing order',
    post(standingOrders, singleText),
    /startDate|frequency/,
  ),
  refused('a frequency that does not exist', periodic({ frequency: 'Fortnightly' }), /frequency/),
  refused('a frequency in small letters', periodic({ frequency: 'monthly' }), /frequency/),
  refused(
    'an execution rule that does not exist',
    periodic({ executionRule: 'whenever-possible' }),
    /executionRule/,
  ),
  refused('a day of execution 32', periodic({ dayOfExecution: '32' }), /dayOfExecution/),
  refused('a day of execution 0', periodic({ dayOfExecution: '0' }), /dayOfExecution/),
  refused('a day of execution as a number', periodic({ dayOfExecution: 5 }), /dayOfExecution/),
  reported(
    'a day of execution as in the published example',
    periodic({ dayOfExecution: '01' }),
    /dayOfExecution/,
  ),
  refused('a start in a month 13', periodic({ startDate: '2031-13-01' }), /startDate/),
  refused('a start with a time', periodic({ startDate: '2031-03-01T00:00:00Z' }), /startDate/),
  refused('an end before the start', periodic({ endDate: '2031-02-01' }), /endDate/),
  refused('an end that does not exist', periodic({ endDate: '2031-04-31' }), /endDate/),
  refused('a standing order of zero', periodic(amount('EUR', '0.00')), /instructedAmount\/amount/),
  refused(
    'a standing order with wrong check digits',
    periodic({ creditorAccount: { iban: 'NL92ABNA0417164300' } }),
    /creditorAccount\/iban/,
  ),
  differs(
    'months of execution',
    periodic({ frequency: 'MonthlyVariable', monthsOfExecution: ['1', '7'] }),
    ['refused', 'valid'],
    /monthsOfExecution|body\/\*/,
  ),
  differs(
    'twelve months of execution',
    periodic({
      frequency: 'MonthlyVariable',
      monthsOfExecution: Array.from({ length: 12 }, (_, month) => `${month + 1}`),
    }),
    ['refused', 'refused'],
    /monthsOfExecution|body\/\*/,
  ),
  differs(
    'a month of execution 13',
    periodic({ frequency: 'MonthlyVariable', monthsOfExecution: ['13'] }),
    ['refused', 'refused'],
    /monthsOfExecution|body\/\*/,
  ),
  // "If and only if" the frequency is MonthlyVariable.
  refused(
    'months of execution of a monthly standing order',
    periodic({ monthsOfExecution: ['1', '7'] }),
    /monthsOfExecution|body\/\*/,
  ),
];

const multipartViolations: readonly Violation[] = [
  refused('multipart without the payment', multipart([jsonPart()]), /xml_sct/),
  refused('multipart without the standing order', multipart([xmlPart]), /json_standingorderType/),
  refused('a part without frequency', multipart([xmlPart, jsonPart({ frequency: undefined })]), /frequency/),
  refused('a part without start', multipart([xmlPart, jsonPart({ startDate: undefined })]), /startDate/),
  refused(
    'a part with an end before the start',
    multipart([xmlPart, jsonPart({ endDate: '2031-02-01' })]),
    /endDate/,
  ),
  refused(
    'a part with a frequency that does not exist',
    multipart([xmlPart, jsonPart({ frequency: 'Fortnightly' })]),
    /frequency/,
  ),
  refused(
    'a part with XML that is not well-formed',
    multipart([{ ...xmlPart, body: pain001.replace('</Document>', '') }, jsonPart()]),
    /xml_sct/,
  ),
  refused(
    'a part with a DOCTYPE',
    multipart([{ ...xmlPart, body: `<!DOCTYPE Document>${pain001}` }, jsonPart()]),
    /xml_sct.*doctype/i,
  ),
  refused(
    'a part with JSON that is cut off',
    multipart([
      xmlPart,
      { name: 'json_standingorderType', body: JSON.stringify(standingOrder).slice(0, -1) },
    ]),
    /json_standingorderType/,
  ),
  refused(
    'a part with the same key twice',
    multipart([
      xmlPart,
      {
        name: 'json_standingorderType',
        body: JSON.stringify(standingOrder).replace('{', '{"frequency":"Quarterly",'),
      },
    ]),
    /json_standingorderType.*duplicate/i,
  ),
  refused(
    'the standing order twice',
    multipart([xmlPart, jsonPart(), jsonPart({ frequency: 'Quarterly' })]),
    /json_standingorderType/,
  ),
  refused('the payment twice', multipart([xmlPart, xmlPart, jsonPart()]), /xml_sct/),
  refused(
    'multipart without boundary in Content-Type',
    multipart([xmlPart, jsonPart()], { 'Content-Type': 'multipart/form-data' }),
    /content-type|boundary|body/i,
  ),
  refused(
    'multipart with another boundary in the body',
    multipart([xmlPart, jsonPart()], { 'Content-Type': 'multipart/form-data; boundary=anotherOne' }),
    /body/,
  ),
  refused(
    'multipart that is cut off',
    multipartBody(partText(xmlPart) + partText(jsonPart()).slice(0, -20)),
    /body/,
  ),
  refused('multipart without body', multipartBody(''), /body/),
  reported(
    'a third part',
    multipart([xmlPart, jsonPart(), { name: 'lieblingsfarbe', body: '"dunkelblau"' }]),
    /\*/,
  ),
];

const xmlViolations: readonly Violation[] = [
  refused('XML without the end of an element', xml(pain001.replace('</PmtInf>', '')), /xml \(xml\)/),
  refused('XML that is cut off', xml(pain001.slice(0, -40)), /xml \(xml\)/),
  refused('XML with two roots', xml(`${pain001}<Document/>`), /xml \(xml\)/),
  refused(
    'XML with an attribute without quotes',
    xml(pain001.replace('Ccy="EUR"', 'Ccy=EUR')),
    /xml \(xml\)/,
  ),
  refused(
    'XML with an attribute twice',
    xml(pain001.replace('Ccy="EUR"', 'Ccy="EUR" Ccy="USD"')),
    /xml \(xml\)/,
  ),
  refused(
    'XML with an undeclared entity',
    xml(pain001.replace('Ref Number', 'Ref&nbsp;Number')),
    /xml \(xml\)/,
  ),
  refused('XML with an ampersand', xml(pain001.replace('Confiserie', 'Confiserie & Sohn')), /xml \(xml\)/),
  refused(
    'XML with an undeclared prefix',
    xml(pain001.replace('<CtrlSum>123</CtrlSum>', '<geld:CtrlSum>123</geld:CtrlSum>')),
    /xml \(xml\)/,
  ),
  refused('XML with a DOCTYPE', xml(`<!DOCTYPE Document>\n${pain001}`), /xml \(doctype\)/),
  refused(
    'XML with an external entity',
    xml(
      `<?xml version="1.0"?>\n<!DOCTYPE Document [<!ENTITY konto SYSTEM "file:///etc/hostname">]>\n${pain001.replace('Ref Number', '&konto;')}`,
    ),
    /xml \(doctype\)/,
  ),
  refused('XML without body', xml(undefined), /body \(no-body\)/),
  refused('JSON sent as XML', xml(singleText), /xml \(xml\)/),
  refused(
    'a bulk in XML that is not well-formed',
    bulkXml(pain001.replace('Ccy="EUR"', 'Ccy=EUR')),
    /xml \(xml\)/,
  ),
  refused('a bulk in XML with a DOCTYPE', bulkXml(`<!DOCTYPE Document>\n${pain001}`), /xml \(doctype\)/),
];

const authorisationViolations: readonly Violation[] = [
  refused(
    'authentication data as a number',
    authorise({ scaAuthenticationData: 123456 }),
    /scaAuthenticationData/,
  ),
  refused(
    'an authentication method of 36 characters',
    authorise({ authenticationMethodId: 'Fotoverfahren'.padEnd(36, '7') }),
    /authenticationMethodId/,
  ),
  refused(
    'a password in place of the data of the payer',
    authorise({ psuData: 'Geheimnis-4711' }),
    /psuData/,
  ),
  refused('a password as a number', authorise({ psuData: { password: 47_110_815 } }), /psuData\/password/),
  refused('a list as an authorisation', authorise([{ scaAuthenticationData: '47110815' }]), /body/),
  refused(
    'the same key twice in an authorisation',
    authoriseWith('{"scaAuthenticationData":"47110815","scaAuthenticationData":"08154711"}'),
    /body.*duplicate/i,
  ),
  refused(
    'an authorisation in JSON that is cut off',
    authoriseWith('{"scaAuthenticationData":"47110815"'),
    /body/,
  ),
  refused(
    'an authorisation as plain text',
    authoriseWith('47110815', { 'Content-Type': 'text/plain' }),
    /content-type/i,
  ),
  refused(
    'an authorisation with a redirect URI with spaces',
    authorise({}, { 'TPP-Redirect-URI': 'merchant callback page' }),
    /tpp-redirect-uri/i,
  ),
  refused(
    'the cancellation of a bulk authorised with a list',
    { ...authorise([]), path: `${bulkTransfers}/{bulk}/cancellation-authorisations` },
    /body/,
  ),
];

const pathViolations: readonly Violation[] = [
  reported(
    'a product that is not in the standard',
    post('/payments/norwegian-domestic-credit-transfers', singleText),
    /product/i,
  ),
  refused(
    'a status read with another product',
    read('/payments/target-2-payments/{single}/status'),
    /product/i,
  ),
  refused('a read of a standing order as a single payment', read(`${transfers}/{periodic}`), /service/i),
  refused('a status read of a bulk as a single payment', read(`${transfers}/{bulk}/status`), /service/i),
  refused(
    'an authorisation of a single payment as a standing order',
    { ...authorise({}), path: `${standingOrders}/{single}/authorisations` },
    /service/i,
  ),
  refused(
    'a cancellation with another product',
    cancel('/periodic-payments/instant-sepa-credit-transfers/{periodic}'),
    /product/i,
  ),
];

const groups: Readonly<Record<string, readonly Violation[]>> = {
  headers: headerViolations,
  Digest: digestViolations,
  'content types': contentTypeViolations,
  'the body of a single payment': singleViolations,
  JSON: jsonViolations,
  'bulk payments': bulkViolations,
  'standing orders in JSON': periodicViolations,
  'standing orders in multipart': multipartViolations,
  XML: xmlViolations,
  authorisations: authorisationViolations,
  paths: pathViolations,
};

const environments = ['bank136', 'bank1311'] as const;
type EnvironmentName = (typeof environments)[number];
type Mode = 'report' | 'enforce';

const reportShape = z.object({
  environments: z.array(z.object({ name: z.string(), requests: z.object({ checked: z.number() }) })),
  deviations: z.array(
    z.object({
      environment: z.string(),
      direction: z.string(),
      path: z.string(),
      rule: z.string(),
      level: z.string(),
      count: z.number(),
    }),
  ),
});

/** A gateway with one environment of each version, and a payment of each service in both. */
interface Testbed {
  readonly gateway: GatewayUnderTest;
  readonly banks: Readonly<Record<EnvironmentName, SimulatedBank>>;
  /** The ids of the payments, by the name of the initiation. */
  readonly payments: Readonly<Record<EnvironmentName, Record<string, string>>>;
  /** How many requests were sent to each environment. */
  readonly sent: Record<EnvironmentName, number>;
}

const scope = scopeOfAllTests();
const testbeds: Partial<Record<Mode, Testbed>> = {};
/** The texts of all refusals. */
const refusals: string[] = [];

before(async () => {
  for (const mode of ['report', 'enforce'] as const) testbeds[mode] = await startTestbed(mode);
});

async function startTestbed(mode: Mode): Promise<Testbed> {
  const banks = { bank136: await startBank(scope), bank1311: await startBank(scope) };
  const settings = (name: EnvironmentName, standardVersion: string) => ({
    baseUrl: banks[name].baseUrl,
    standardVersion,
    contract: { requests: mode, responses: 'off' },
  });
  const gateway = await startGateway(scope, {
    environments: {
      active: 'bank136',
      bank136: settings('bank136', '1.3.6'),
      bank1311: settings('bank1311', '1.3.11'),
    },
  });
  const testbed: Testbed = {
    ...{ gateway, banks },
    payments: { bank136: {}, bank1311: {} },
    sent: { bank136: 0, bank1311: 0 },
  };
  for (const environment of environments)
    for (const [name, initiate] of Object.entries(initiated)) {
      const reply = await send(testbed, environment, initiate());
      assert.equal(reply.status, 201, reply.text);
      testbed.payments[environment][name] = String(jsonOf(reply).paymentId);
    }
  return testbed;
}

function send(testbed: Testbed, environment: EnvironmentName, request: ContractRequest): Promise<Reply> {
  testbed.sent[environment]++;
  const { headers, ...rest } = callOf(request, testbed.payments[environment]);
  return call(testbed.gateway.url, {
    ...rest,
    headers: [...(headers ?? []), ['Penstock-Environment', environment]],
  });
}

/** How often the report lists each deviation, once it has every request that was sent. */
async function readReport({ gateway, sent }: Testbed): Promise<ReadonlyMap<string, number>> {
  let report: z.output<typeof reportShape> | undefined;
  await until(
    10_000,
    () => `every request is checked: ${JSON.stringify([report?.environments, sent])}`,
    async () => {
      const reply = await callAdminApi(gateway, 'GET', '/api/contract');
      report = reportShape.parse(JSON.parse(reply.text));
      const checked = new Map(report.environments.map(({ name, requests }) => [name, requests.checked]));
      return environments.every((name) => checked.get(name) === sent[name]);
    },
  );
  return new Map(
    report?.deviations.map(({ environment, path, rule, level, count }) => [
      `${environment} ${path} (${rule}) ${level}`,
      count,
    ]),
  );
}

function testbedOf(mode: Mode): Testbed {
  const testbed = testbeds[mode];
  if (!testbed) throw new Error(`the gateway of ${mode} has not started`);
  return testbed;
}

/** Sends a request under `report`: the bank receives it. @returns what the report lists of it, as `path (rule)` */
async function sendReported(
  request: ContractRequest,
): Promise<Readonly<Record<EnvironmentName, readonly string[]>>> {
  const testbed = testbedOf('report');
  const earlier = await readReport(testbed);
  for (const environment of environments) {
    const bank = testbed.banks[environment];
    const reached = bank.requests.length;
    const reply = await send(testbed, environment, request);
    assert.equal(bank.requests.length, reached + 1, reply.text);
  }
  const report = await readReport(testbed);
  const addedTo = (environment: EnvironmentName) =>
    [...report.keys()]
      .filter((key) => key.startsWith(`${environment} `) && report.get(key) !== earlier.get(key))
      .map((key) => key.slice(environment.length + 1));
  return { bank136: addedTo('bank136'), bank1311: addedTo('bank1311') };
}

/** Sends a request under `enforce`. @returns the text of the refusal, or `undefined` if the bank has received the request */
async function sendEnforced(
  environment: EnvironmentName,
  request: ContractRequest,
): Promise<string | undefined> {
  const testbed = testbedOf('enforce');
  const bank = testbed.banks[environment];
  const reached = bank.requests.length;
  const reply = await send(testbed, environment, request);
  if (reply.header('Penstock-Error') === 'CONTRACT_VIOLATED') {
    assert.equal(reply.status, 400);
    assert.equal(bank.requests.length, reached);
    refusals.push(reply.fields.join('\n'), reply.text);
    return reply.text;
  }
  assert.equal(bank.requests.length, reached + 1, reply.text);
  return undefined;
}

for (const [group, violations] of Object.entries(groups))
  describe(`violations: ${group}`, () => {
    for (const { name, request, listed, ...outcomes } of violations)
      test(`${name}: ${outcomes.under136} under 1.3.6, ${outcomes.under1311} under 1.3.11`, async () => {
        const lists = await sendReported(request);
        const refusal136 = await sendEnforced('bank136', request);
        const refusal1311 = await sendEnforced('bank1311', request);
        const seen = {
          under136: outcomeOf(refusal136, lists.bank136),
          under1311: outcomeOf(refusal1311, lists.bank1311),
        };
        assert.deepEqual(seen, outcomes, JSON.stringify({ seen, outcomes, lists }));
        for (const list of Object.values(lists))
          assert.ok(list.length === 0 || list.some((each) => listed.test(each)), JSON.stringify(lists));
        for (const text of [refusal136, refusal1311]) if (text !== undefined) assert.match(text, listed);
      });
  });

function outcomeOf(refusal: string | undefined, listed: readonly string[]): Outcome {
  if (refusal !== undefined) return 'refused';
  return listed.length > 0 ? 'reported' : 'valid';
}

test('no value of a request is in a refusal, in the report, in a metric or in a log', async () => {
  const requests = Object.values(groups).flatMap((violations) => violations.map(({ request }) => request));
  const values = new Set(requests.flatMap(secretsOf));
  assert.ok(values.size >= 50, `${values.size} values`);
  const texts = [...refusals];
  for (const { gateway } of [testbedOf('report'), testbedOf('enforce')]) {
    for (const path of ['/api/contract', '/metrics'])
      texts.push((await callAdminApi(gateway, 'GET', path)).text);
    texts.push(...gateway.logLines);
  }
  const all = texts.join('\n');
  assert.deepEqual(
    [...values].filter((value) => all.includes(value)),
    [],
  );
});

/** Values of at least six characters; short numbers are left out, because a metric can have the same. */
function secretsOf({ headers, body = '' }: ContractRequest): readonly string[] {
  const text = body.toString();
  const inJson = [...text.matchAll(/[:[,]"([^"\\]{6,})"(?!:)/g)].map(([, value = '']) => value);
  const inXml = [...text.matchAll(/>\s*([^<>\s{][^<>]{5,})</g)].map(([, value = '']) => value.trim());
  const inHeaders = headers
    .filter(([name]) => !/^(accept|content-type)$/i.test(name))
    .map(([, value]) => value);
  return [...inJson, ...inXml, ...inHeaders].filter((value) => /^(?=.*[^\d.]).{6,}$|^.{10,}$/su.test(value));
}
