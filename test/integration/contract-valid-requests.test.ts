/**
 * Valid requests that a strict schema can wrongly refuse: under `enforce` the bank receives every one, unchanged. Derived from the
 * text of the standard and not from the schemas of the gateway.
 */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { before, describe, test } from 'node:test';
import type { SimulatedBank } from '../../src/simulated-bank/bank.ts';
import { call, jsonOf, type Reply } from '../kit/call.ts';
import {
  authorise,
  authoriseWith,
  bulk,
  bulkElement,
  bulkWith,
  bulkXml,
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
  transfers,
  xml,
  xmlPart,
} from '../kit/contract-requests.ts';
import { type GatewayUnderTest, startBank, startGateway } from '../kit/gateway.ts';
import { scopeOfAllTests } from '../kit/test-scope.ts';

const versions = ['1.3.6', '1.3.11'] as const;
type Version = (typeof versions)[number];

interface ValidRequest {
  readonly name: string;
  readonly request: ContractRequest;
  readonly versions: readonly Version[];
}

const valid = (name: string, request: ContractRequest): ValidRequest => ({ name, request, versions });
/** Uses what 1.3.6 does not know. */
const validSince1311 = (name: string, request: ContractRequest): ValidRequest => ({
  ...{ name, request },
  versions: ['1.3.11'],
});

const amount = (currency: string, value: string) => ({ instructedAmount: { currency, amount: value } });
const account = (one: object) => single({ creditorAccount: one });
const singleText = JSON.stringify(singleBody);
const hash = (algorithm: 'sha256' | 'sha512', text: string) =>
  createHash(algorithm).update(text).digest('base64');
const signed = {
  Signature:
    'keyId="SN=9FA1,CA=CN=Trust%20Center,C=DE",algorithm="rsa-sha256",headers="digest x-request-id tpp-redirect-uri",signature="c2lnbmF0dXJl"',
  'TPP-Signature-Certificate': 'Y2VydGlmaWNhdGU=',
};
const withDigest = (Digest: string) => post(transfers, singleText, { ...signed, Digest });
const lowerCaseNames = ({ headers, ...rest }: ContractRequest): ContractRequest => ({
  ...rest,
  headers: headers.map(([name, value]) => [name.toLowerCase(), value]),
});

const groups: Readonly<Record<string, readonly ValidRequest[]>> = {
  headers: [
    valid(
      'names in lower case',
      lowerCaseNames(single({}, { 'PSU-Device-ID': '99435C7E-AD88-49EC-A2AD-99DDCB1F5555' })),
    ),
    valid('an IPv6 address of the payer', single({}, { 'PSU-IP-Address': '2001:db8::8a2e:370:7334' })),
    valid(
      'an unknown header and credentials',
      single({}, { 'X-Bank-Branch': 'any', Authorization: 'Bearer abc', Cookie: 'a=b' }),
    ),
    valid(
      'redirect and decoupled both preferred',
      single({}, { 'TPP-Redirect-Preferred': 'true', 'TPP-Decoupled-Preferred': 'true' }),
    ),
    valid(
      'a redirect URI of an app',
      single({}, { 'TPP-Redirect-URI': 'merchant.app://return?state=1#top' }),
    ),
    valid(
      'a redirect URI with a query',
      single({}, { 'TPP-Redirect-URI': 'https://tpp.example/cb?state=a%20b&x=1' }),
    ),
    valid(
      'everything that is known of the payer',
      single(
        {},
        {
          'PSU-ID': 'Erika Mustermann',
          'PSU-ID-Type': 'any',
          'PSU-Corporate-ID': '4711',
          'PSU-Corporate-ID-Type': 'any',
          'PSU-IP-Port': '51234',
          'PSU-Accept': 'text/html,*/*;q=0.8',
          'PSU-Accept-Charset': 'utf-8',
          'PSU-Accept-Encoding': 'gzip, br',
          'PSU-Accept-Language': 'de-DE,de;q=0.9',
          'PSU-User-Agent': 'Mozilla/5.0 (X11; Linux x86_64)',
          'PSU-Http-Method': 'PUT',
          'PSU-Device-ID': '99435c7e-ad88-49ec-a2ad-99ddcb1f5555',
          'PSU-Geo-Location': 'GEO:52.506931;-13.144558',
        },
      ),
    ),
    valid(
      'everything that a TPP can prefer',
      periodic(
        {},
        {
          'TPP-Redirect-Preferred': 'false',
          'TPP-Nok-Redirect-URI': 'https://tpp.example/nok',
          'TPP-Explicit-Authorisation-Preferred': 'true',
          'TPP-Rejection-NoFunds-Preferred': 'false',
          'TPP-Brand-Logging-Information': 'brand',
          'TPP-Notification-URI': 'https://tpp.example/notify',
          'TPP-Notification-Content-Preferred': 'status=SCA,PROCESS',
          'Consent-ID': '1234-consent',
        },
      ),
    ),
    valid('no TPP-Redirect-URI', single({}, { 'TPP-Redirect-URI': null })),
    valid('no Accept', single({}, { Accept: null })),
  ],
  'content types': [
    valid('with a charset', single({}, { 'Content-Type': 'application/json;charset=UTF-8' })),
    valid(
      'with a quoted charset and spaces',
      single({}, { 'Content-Type': 'application/json ; charset="utf-8"' }),
    ),
    valid('in other letters', single({}, { 'Content-Type': 'Application/JSON' })),
    valid('XML with a charset', xml(pain001, { 'Content-Type': 'application/xml; charset=utf-8' })),
  ],
  Digest: [
    valid('of SHA-256', withDigest(`SHA-256=${hash('sha256', singleText)}`)),
    valid('of SHA-512', withDigest(`SHA-512=${hash('sha512', singleText)}`)),
    valid(
      'of both',
      withDigest(`SHA-512=${hash('sha512', singleText)}, SHA-256=${hash('sha256', singleText)}`),
    ),
    valid('with an algorithm in small letters', withDigest(`sha-256=${hash('sha256', singleText)}`)),
    valid(
      'with an unknown algorithm next to it',
      withDigest(`MD5=rL0Y20zC+Fzt72VPzMSk2A==,SHA-256=${hash('sha256', singleText)}`),
    ),
    valid(
      'of no body',
      read(`${transfers}/{single}`, {
        ...signed,
        Digest: 'SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=',
      }),
    ),
    valid('of a multipart body', withDigestOf(multipart([xmlPart, jsonPart()]))),
  ],
  amounts: [
    valid('the smallest', single(amount('EUR', '0.01'))),
    valid('without digits', single(amount('EUR', '123'))),
    valid('with one digit', single(amount('EUR', '123.5'))),
    valid('of 14 digits', single(amount('EUR', '99999999999999.99'))),
    valid('in yen', single(amount('JPY', '1500'))),
    valid('in dinars with three digits', single(amount('KWD', '1.234'))),
    valid('in a bulk element', bulkWith(amount('CHF', '0.05'))),
  ],
  accounts: [
    valid('an IBAN of the Netherlands', account({ iban: 'NL91ABNA0417164300' })),
    valid('an IBAN of France', account({ iban: 'FR1420041010050500013M02606' })),
    valid('an IBAN of Malta', account({ iban: 'MT84MALT011000012345MTLCAST001S' })),
    valid('an IBAN of Norway', account({ iban: 'NO9386011117947' })),
    valid('an IBAN with a currency', account({ ...creditorAccount, currency: 'CHF' })),
    valid('a BBAN', account({ bban: 'BARC12345612345678' })),
    valid('a card', account({ pan: '5409050000000000' })),
    valid('a masked card', account({ maskedPan: '123456xxxxxx1234' })),
    valid('a telephone number', account({ msisdn: '+49 170 1234567' })),
    validSince1311(
      'another identification',
      account({ other: { identification: '4711', schemeNameCode: 'BBAN' } }),
    ),
    validSince1311('the type of the account', account({ ...creditorAccount, cashAccountType: 'CACC' })),
  ],
  'texts and fields': [
    valid('a name of 70 characters', single({ creditorName: 'x'.repeat(70) })),
    valid('a name of 70 characters outside the basic plane', single({ creditorName: '🥨'.repeat(70) })),
    valid('a name in Greek', single({ creditorName: 'Παπαδόπουλος & Υἱοί' })),
    valid('a name with escapes', post(transfers, singleText.replace('Bäckerei', 'B\\u00e4ckerei'))),
    valid('a name of an agent of 70 characters', single({ creditorAgentName: 'x'.repeat(70) })),
    validSince1311('a name of an agent of 140 characters', single({ creditorAgentName: 'x'.repeat(140) })),
    valid(
      'an end-to-end identification of 35 characters',
      single({ endToEndIdentification: 'x'.repeat(35) }),
    ),
    valid(
      'a remittance information of 140 characters',
      single({ remittanceInformationUnstructured: 'ä'.repeat(140) }),
    ),
    valid('no remittance information', single({ remittanceInformationUnstructured: undefined })),
    valid(
      'a whole address',
      single({
        creditorAddress: {
          streetName: 'Weg',
          buildingNumber: '1a',
          townName: 'Ort',
          postCode: '12345',
          country: 'DE',
        },
      }),
    ),
    valid('an address of only a country', single({ creditorAddress: { country: 'FR' } })),
    valid('a BIC of 8 characters', single({ creditorAgent: 'AAAADEBB' })),
    valid('a BIC of 11 characters', single({ creditorAgent: 'AAAADEBBXXX' })),
    valid(
      'structured remittance information',
      single({ remittanceInformationStructured: { reference: 'RF18539007547034' } }),
    ),
    validSince1311(
      'many structured remittance informations',
      single({
        remittanceInformationStructuredArray: [
          { reference: 'a', referenceType: 'b', referenceIssuer: 'c' },
          { reference: 'd' },
        ],
      }),
    ),
    validSince1311('an execution date', single({ requestedExecutionDate: '2032-02-29' })),
    validSince1311(
      'all that 1.3.11 knows',
      single({
        chargeBearer: 'SLEV',
        purposeCode: 'SALA',
        debtorName: 'Erika',
        ultimateDebtor: 'Max',
        ultimateCreditor: 'Moritz',
        instructionIdentification: 'a-1',
        creditorId: 'DE98ZZZ09999999999',
      }),
    ),
    valid('unknown fields', single({ bankField: { nested: [1, 2, { deep: null }] } })),
    valid(
      'unknown fields with names of JavaScript',
      post(transfers, singleText.replace('{', '{"__proto__":{"iban":1},"constructor":null,"toString":7,')),
    ),
    valid(
      'equal keys in different objects',
      single({ bankField: { creditorName: 1, iban: 2 }, otherField: { creditorName: 1, iban: 2 } }),
    ),
    valid('spaces and newlines', post(transfers, `\r\n\t ${JSON.stringify(singleBody, null, 2)} \n`)),
  ],
  'bulk payments': [
    valid('of one payment', bulk({ payments: [bulkElement] })),
    valid('of 250 payments', bulk({ payments: Array.from({ length: 250 }, () => bulkElement) })),
    valid('as a batch', bulk({ batchBookingPreferred: true })),
    valid('not as a batch', bulk({ batchBookingPreferred: false, paymentInformationId: 'x'.repeat(35) })),
    valid('as a batch, as in the published example', bulk({ batchBookingPreferred: 'true' })),
    valid('on a date', bulk({ requestedExecutionDate: '2032-02-29' })),
    valid('at a time', bulk({ requestedExecutionTime: '2032-02-29T10:00:00.000Z' })),
    valid('at a time of another zone', bulk({ requestedExecutionTime: '2032-02-29T10:00:00+01:00' })),
    valid('with currencies of their own', bulkWith(amount('SEK', '10'))),
  ],
  'standing orders': [
    valid('without end', periodic({})),
    valid('with an end', periodic({ endDate: '2031-03-02' })),
    valid('from a leap day', periodic({ startDate: '2032-02-29' })),
    valid('from a day in the past, as in the published example', periodic({ startDate: '2018-03-01' })),
    valid('on the last day', periodic({ dayOfExecution: '31', executionRule: 'following' })),
    valid('with the day of the published example', periodic({ dayOfExecution: '01' })),
    ...['Daily', 'Weekly', 'EveryTwoWeeks', 'EveryTwoMonths', 'Quarterly', 'SemiAnnual', 'Annual'].map(
      (frequency) => valid(`with the frequency ${frequency}`, periodic({ frequency })),
    ),
    validSince1311(
      'in some months',
      periodic({ frequency: 'MonthlyVariable', monthsOfExecution: ['1', '12'] }),
    ),
    validSince1311(
      'in eleven months',
      periodic({
        frequency: 'MonthlyVariable',
        monthsOfExecution: Array.from({ length: 11 }, (_, index) => `${index + 1}`),
      }),
    ),
  ],
  multipart: [
    valid('as published', multipart([xmlPart, jsonPart()])),
    valid('with the parts in another order', multipart([jsonPart(), xmlPart])),
    valid(
      'with a quoted boundary',
      multipart([xmlPart, jsonPart()], { 'Content-Type': 'multipart/form-data; boundary="AaaBbbCcc"' }),
    ),
    valid(
      'with another parameter and other letters',
      multipart([xmlPart, jsonPart()], {
        'Content-Type': 'Multipart/Form-Data; charset=utf-8; BOUNDARY=AaaBbbCcc',
      }),
    ),
    valid(
      'with more headers in a part',
      multipart([
        {
          ...xmlPart,
          head: 'Content-Disposition: form-data; name="xml_sct"; filename="pain.xml"\r\nContent-Type: application/xml; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\nContent-ID: <1>',
        },
        jsonPart(),
      ]),
    ),
    valid(
      'with headers in another order and other letters',
      multipart([
        { ...xmlPart, head: 'content-type: application/xml\r\ncontent-disposition: form-data; name=xml_sct' },
        jsonPart(),
      ]),
    ),
    valid(
      'with text before and behind',
      multipartBody(`preamble\r\n${partText(xmlPart)}${partText(jsonPart())}--AaaBbbCcc--\r\nepilogue`),
    ),
    valid(
      'without a newline at the end',
      multipartBody(`${partText(xmlPart)}${partText(jsonPart())}--AaaBbbCcc--`),
    ),
    valid(
      'with spaces behind the boundary',
      multipartBody(
        `${partText(xmlPart).replace('Ccc\r\n', 'Ccc  \r\n')}${partText(jsonPart())}--AaaBbbCcc--\r\n`,
      ),
    ),
    valid(
      'with only the required fields',
      multipart([
        xmlPart,
        { name: 'json_standingorderType', body: '{"startDate":"2031-03-01","frequency":"Daily"}' },
      ]),
    ),
    valid('with the boundary of a mail program', {
      ...multipartBody(
        `${partText(xmlPart)}${partText(jsonPart())}--AaaBbbCcc--\r\n`.replaceAll(
          'AaaBbbCcc',
          "----=_Part'1.23_(4):+",
        ),
      ),
      headers: post('', '', { 'Content-Type': `multipart/form-data; boundary="----=_Part'1.23_(4):+"` })
        .headers,
    }),
    validSince1311(
      'in some months',
      multipart([
        xmlPart,
        jsonPart({ ...standingOrder, frequency: 'MonthlyVariable', monthsOfExecution: ['2', '8'] }),
      ]),
    ),
  ],
  XML: [
    valid('as published', xml(pain001)),
    valid(
      'with a declaration and comments',
      xml(
        `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<!-- one -->\n${pain001}\n<!-- two -->\n`,
      ),
    ),
    valid('with a processing instruction', xml(`<?xml version="1.0"?><?show any="1"?>${pain001}`)),
    valid(
      'with CDATA',
      xml(pain001.replace('Confiserie Morgenstern', '<![CDATA[Confiserie & <Morgenstern>]]>')),
    ),
    valid(
      'with references to characters',
      xml(pain001.replace('Confiserie', 'B&#228;cker &amp; S&#xF6;hne')),
    ),
    valid('with a prefix', xml(pain001.replace(/<(\/?)(\w)/g, '<$1p:$2').replace('xmlns=', 'xmlns:p='))),
    valid(
      'with a schema location',
      xml(
        pain001.replace(
          '<Document ',
          '<Document xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="urn:x pain.xsd" ',
        ),
      ),
    ),
    valid(
      'with single quotes and spaces in tags',
      xml(pain001.replace('Ccy="EUR"', "Ccy = 'EUR'").replace('<ChrgBr>', '<ChrgBr\n>')),
    ),
    valid(
      'in ISO-8859-1',
      xml(
        Buffer.from(
          `<?xml version="1.0" encoding="ISO-8859-1"?>${pain001.replace('Confiserie', 'Bäckerei')}`,
          'latin1',
        ),
      ),
    ),
    valid('with a byte order mark', xml(`\ufeff${pain001}`)),
    valid('of a bulk', bulkXml(pain001)),
  ],
  authorisations: [
    valid('without body and Content-Type', authoriseWith(undefined, { 'Content-Type': null })),
    valid('without body', authoriseWith(undefined)),
    valid('with an empty object', authorise({})),
    valid('with a password', authorise({ psuData: { password: 'start12' } })),
    valid('with an encrypted password', authorise({ psuData: { encryptedPassword: 'c3RhcnQxMg==' } })),
    valid('with a method', authorise({ authenticationMethodId: 'myAuthenticationID' })),
    valid('with authentication data', authorise({ scaAuthenticationData: '123456' })),
    valid('of the cancellation', {
      ...authorise({}),
      path: `${transfers}/{single}/cancellation-authorisations`,
    }),
  ],
  'reads and cancellations': [
    valid('a read without Authorization and address', read(`${transfers}/{single}`)),
    valid(
      'a status read that accepts XML',
      read(`${transfers}/{single}/status`, { Accept: 'application/xml' }),
    ),
    valid(
      'a read of a standing order with a Content-Type',
      read('/periodic-payments/sepa-credit-transfers/{periodic}', { 'Content-Type': 'application/json' }),
    ),
    valid('a list of authorisations', read(`${transfers}/{single}/authorisations`)),
    valid('a product of this bank', post('/payments/norwegian-domestic-credit-transfers', singleText)),
    valid('a cancellation', cancel(`${transfers}/{single}`)),
    valid(
      'a cancellation with preferences',
      cancel('/periodic-payments/sepa-credit-transfers/{periodic}', {
        'TPP-Redirect-Preferred': 'true',
        'TPP-Explicit-Authorisation-Preferred': 'true',
        'TPP-Redirect-URI': 'https://tpp.example/ok',
      }),
    ),
  ],
};

interface Testbed {
  readonly gateway: GatewayUnderTest;
  readonly bank: SimulatedBank;
  /** The ids of the payments, by the name of the initiation. */
  readonly payments: Readonly<Record<string, string>>;
}

const scope = scopeOfAllTests();
const testbeds = new Map<Version, Testbed>();

before(async () => {
  for (const version of versions) testbeds.set(version, await startTestbed(version));
});

async function startTestbed(standardVersion: Version): Promise<Testbed> {
  const bank = await startBank(scope);
  const contract = { requests: 'enforce', responses: 'off' };
  const gateway = await startGateway(scope, {
    environments: { active: 'live', live: { baseUrl: bank.baseUrl, standardVersion, contract } },
  });
  const payments: Record<string, string> = {};
  for (const [name, initiate] of Object.entries(initiated)) {
    const reply = await send({ gateway, bank, payments }, initiate());
    assert.equal(reply.status, 201, reply.text);
    payments[name] = String(jsonOf(reply).paymentId);
  }
  return { gateway, bank, payments };
}

const send = ({ gateway, payments }: Testbed, request: ContractRequest): Promise<Reply> =>
  call(gateway.url, callOf(request, payments));

for (const [group, requests] of Object.entries(groups))
  describe(`valid requests: ${group}`, () => {
    for (const { name, request, versions } of requests)
      test(`${name}: sent under ${versions.join(' and ')}`, async () => {
        for (const version of versions) {
          const testbed = testbeds.get(version);
          assert.ok(testbed);
          const reached = testbed.bank.requests.length;
          const reply = await send(testbed, request);
          assert.equal(reply.header('Penstock-Error'), undefined, reply.text);
          assert.equal(testbed.bank.requests.length, reached + 1);
        }
      });
  });

function withDigestOf(request: ContractRequest): ContractRequest {
  const digest = createHash('sha256')
    .update(request.body ?? '')
    .digest('base64');
  return {
    ...request,
    headers: [...request.headers, ...Object.entries({ ...signed, Digest: `SHA-256=${digest}` })],
  };
}
