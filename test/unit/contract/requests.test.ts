import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isValidIBAN } from 'ibantools';
import { answerDefinitions } from '../../../src/contract/answer-schemas.ts';
import { prepareContract } from '../../../src/contract/contract.ts';
import { fractionDigitsOf } from '../../../src/contract/currencies.ts';
import { isDate, isDateAndTime, isTimeZone } from '../../../src/contract/dates.ts';
import { isValidIban, looksLikeIban } from '../../../src/contract/iban.ts';
import { inspectRequest, judgeRequest } from '../../../src/contract/judge-request.ts';
import {
  bulk,
  bulkElement,
  contract6,
  contract11,
  harmfulOf,
  multipart,
  pain001,
  partsOf,
  periodic,
  request,
  single,
  standingOrder,
  verdictOf,
} from '../../kit/judged.ts';

const inZone = (timeZone: string) => prepareContract({ standardVersion: '1.3.11', timeZone });
const amsterdam = await inZone('Europe/Amsterdam');

describe('dates in the past', () => {
  const paid = (requestedExecutionDate: string, receivedAtMs: number) =>
    request.single(single({ requestedExecutionDate }), { receivedAtMs });
  const midnightAtAmsterdam = Date.UTC(2026, 5, 9, 22); // 00:00 of the 10th in summer

  test('are harmful only where the zone of the bank is known', () => {
    const late = paid('2026-06-01', midnightAtAmsterdam);
    assert.deepEqual(verdictOf(contract11, late), [
      'notable date-in-past body/requestedExecutionDate may-be-refused',
    ]);
    assert.deepEqual(verdictOf(amsterdam, late), [
      'harmful date-in-past body/requestedExecutionDate refused',
    ]);
  });

  test('begin at midnight of that zone', () => {
    const yesterday = '2026-06-09';
    assert.deepEqual(verdictOf(amsterdam, paid(yesterday, midnightAtAmsterdam - 1)), []);
    assert.deepEqual(harmfulOf(amsterdam, paid(yesterday, midnightAtAmsterdam)), [
      'date-in-past body/requestedExecutionDate',
    ]);
    assert.deepEqual(verdictOf(amsterdam, paid('2026-06-10', midnightAtAmsterdam)), []);
  });

  test('are reported without a zone if they are past everywhere', () => {
    assert.deepEqual(verdictOf(contract11, paid('2026-06-09', midnightAtAmsterdam)), []);
    assert.equal(verdictOf(contract11, paid('2026-06-08', midnightAtAmsterdam)).length, 1);
  });

  test('are found in every kind of body', () => {
    const receivedAtMs = Date.UTC(2030, 0, 1, 12);
    const past = [
      request.bulk(undefined, { receivedAtMs }),
      request.periodic(undefined, { receivedAtMs }),
      request.xml(undefined, { receivedAtMs }),
      request.multipart(undefined, { receivedAtMs }),
    ];
    assert.deepEqual(
      past.map((judged) => harmfulOf(amsterdam, judged).join()),
      [
        'date-in-past body/requestedExecutionDate',
        'date-in-past body/startDate',
        'date-in-past xml/ReqdExctnDt',
        'date-in-past parts/json_standingorderType/startDate,date-in-past parts/xml_sct/ReqdExctnDt',
      ],
    );
  });

  test('are found in newer messages of XML', () => {
    const xml = pain001()
      .replace('pain.001.001.03', 'pain.001.001.09')
      .replace('BIC>', 'BICFI>')
      .replace('/BIC>', '/BICFI>');
    for (const day of ['<Dt>2027-02-15</Dt>', '<DtTm>2027-02-15T10:00:00</DtTm>']) {
      const judged = request.xml(xml.replace('<ReqdExctnDt>2027-02-15<', `<ReqdExctnDt>${day}<`), {
        receivedAtMs: Date.UTC(2030, 0, 1),
      });
      assert.deepEqual(harmfulOf(amsterdam, judged), ['date-in-past xml/ReqdExctnDt']);
    }
  });

  test('need a zone that exists', () => {
    assert.ok(isTimeZone('Europe/Amsterdam') && isTimeZone('UTC'));
    assert.ok(!isTimeZone('Europe/Nowhere') && !isTimeZone(''));
  });
});

describe('what is only reported', () => {
  const notable: readonly (readonly [string, Parameters<typeof verdictOf>[1], string])[] = [
    ['an unknown field', request.single(single({ canary: 1 })), 'notable unknown body/* ignored'],
    [
      'a field of a comment',
      request.single(single({ debtorId: '1' })),
      'notable not-in-standard body/debtorId may-be-ignored',
    ],
    [
      'an unknown part',
      request.multipart(multipart([...partsOf(), ['canary', 'text/plain', 'x']])),
      'notable unknown parts/* ignored',
    ],
    [
      'an empty text',
      request.single(single({ endToEndIdentification: '' })),
      'notable empty body/endToEndIdentification may-be-refused',
    ],
    [
      'a debtor without an account',
      request.single(single({ debtorAccount: {} })),
      'notable identification body/debtorAccount may-be-refused',
    ],
    [
      'a currency that was replaced',
      request.single(single({ instructedAmount: { currency: 'HRK', amount: '1' } })),
      'notable currency-withdrawn body/instructedAmount/currency may-be-refused',
    ],
    [
      '15 significant digits',
      request.single(single({ instructedAmount: { currency: 'EUR', amount: '12345678901234.5' } })),
      'notable significant-digits body/instructedAmount/amount may-be-refused',
    ],
    [
      'one day of a standing order',
      request.periodic(periodic({ endDate: '2027-03-01' })),
      'notable end-before-start body/endDate may-be-refused',
    ],
    [
      'a lone surrogate',
      request.single(undefined, { body: JSON.stringify(single()).replace('Merchant123', '\\ud800x') }),
      'notable lone-surrogate body may-be-refused',
    ],
    [
      'an unknown hash',
      request.single(undefined, { headers: { Digest: 'MD5=QUJD' } }),
      'notable digest-algorithm headers/Digest may-be-refused',
    ],
    [
      'two steps at once',
      request.authorisation({ psuData: { password: 'x' }, scaAuthenticationData: '1' }),
      'notable several-bodies body may-be-refused',
    ],
    [
      'Accept without JSON',
      request.single(undefined, { headers: { Accept: 'text/html' } }),
      'notable accept headers/Accept may-be-refused',
    ],
    [
      'a port that is none',
      request.single(undefined, { headers: { 'PSU-IP-Port': '70000' } }),
      'notable format headers/PSU-IP-Port ignored',
    ],
    [
      'another scheme of credentials',
      request.single(undefined, { headers: { Authorization: 'Basic QUJD' } }),
      'notable format headers/Authorization may-be-refused',
    ],
    [
      'IPv6',
      request.single(undefined, { headers: { 'PSU-IP-Address': '2001:db8::1' } }),
      'usual ipv6 headers/PSU-IP-Address may-be-refused',
    ],
    [
      'a misspelt header',
      request.single(undefined, { headers: { 'TPP-Redirect-Url': 'https://x.example' } }),
      'usual unknown headers/* ignored',
    ],
    [
      'a product of the bank',
      request.single(undefined, { product: 'domestic' }),
      'usual unknown path/payment-product may-be-refused',
    ],
    [
      'a leading zero',
      request.periodic(periodic({ dayOfExecution: '01' })),
      'usual leading-zero body/dayOfExecution may-be-refused',
    ],
    [
      'a flag as a text',
      request.bulk(bulk({ batchBookingPreferred: 'true' })),
      'usual text-for-boolean body/batchBookingPreferred may-be-refused',
    ],
    [
      'white space around an IBAN',
      request.xml(pain001().replace('<IBAN>', '<IBAN> ')),
      'usual white-space xml/IBAN may-be-refused',
    ],
  ];
  for (const [name, judged, expected] of notable) {
    test(name, () => {
      for (const contract of [contract6, contract11]) assert.equal(verdictOf(contract, judged)[0], expected);
    });
  }

  test('headers of the gateway and of banks are not judged', () => {
    const headers = {
      'X-API-Key': '',
      'Penstock-Environment': '?',
      Connection: 'x',
      'Trading-Hours': '?',
      Prefer: 'wait=x',
    };
    assert.deepEqual(verdictOf(contract6, request.single(undefined, { headers })), []);
  });

  test('an authorisation may start without a body and its type', () => {
    const judged = request.authorisation('', { headers: { 'Content-Type': undefined } });
    assert.deepEqual(verdictOf(contract6, judged), []);
  });

  test('lists may be sent as several headers', () => {
    const judged = request.single(undefined, { headers: { Accept: 'text/html' } });
    const headers = [
      ...judged.headers,
      ['accept', 'application/json'],
      ['PSU-Accept', 'a'],
      ['PSU-Accept', 'b'],
    ] as const;
    assert.deepEqual(verdictOf(contract6, { ...judged, headers }), []);
  });

  test('parameters of types may be written in any case', () => {
    for (const type of ['application/json;charset=UTF-8', 'Application/JSON; charset="utf-8"'])
      assert.deepEqual(
        verdictOf(contract6, request.single(undefined, { headers: { 'Content-Type': type } })),
        [],
      );
    const judged = request.multipart(undefined, {
      headers: { 'Content-Type': 'Multipart/Form-Data; Boundary="AaB03x"' },
    });
    assert.deepEqual(verdictOf(contract6, judged), []);
  });
});

describe('paths of deviations', () => {
  test('contain no key and no index of the body', () => {
    const canary = 'DE40100100103307118608';
    const judged = request.single(
      single({
        [canary]: 1,
        instructedAmount: { [canary]: { [canary]: 1 }, amount: 1 },
        creditorAddress: { [canary]: canary },
      }),
    );
    const nested = request.single(undefined, { body: `{"${canary}":{"12":[{"a":1,"a":2}]}}` });
    const found = [judged, nested].flatMap((one) => judgeRequest(contract11, inspectRequest(one)));
    const paths = found.map(({ path }) => path);
    assert.ok(!JSON.stringify(found).includes('DE40'));
    assert.ok(paths.includes('body/instructedAmount/*') && paths.includes('body/*/#/#'), paths.join(', '));
  });

  test('are at most 50 for one message', () => {
    const wrong = (value: unknown) => Object.fromEntries(names.map((name) => [name, value]));
    const payments = [wrong(null), wrong({ iban: 1, bban: 1, pan: 1, maskedPan: 1, msisdn: 1, currency: 1 })];
    const found = verdictOf(contract11, request.bulk(bulk({ ...wrong(1), payments })));
    assert.ok(found.length > 20 && found.length <= 50, `${found.length}`);
    assert.ok(found.includes('notable too-many-deviations message not-judged'));
  });

  test('harmful ones are found after any number of others', () => {
    const noted = Array.from({ length: 3_000 }, () => bulkElement({ canary: 1, chargeBearer: 'SLEV' }));
    const last = bulkElement({ creditorName: undefined });
    for (const contract of [contract6, contract11])
      assert.deepEqual(harmfulOf(contract, request.bulk(bulk({ payments: [...noted, last] }))), [
        'required body/payments/#/creditorName',
      ]);
  });

  const names = [...Object.keys(Object(answerDefinitions.shownPeriodicPayment.properties)), 'canary'];
});

describe('IBANs, currencies and dates', () => {
  test('an IBAN is valid where ibantools says so', () => {
    const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ';
    const known = [
      'NL76RABO0359400371',
      'FR7612345987650123456789014',
      'MT84MALT011000012345MTLCAST001S',
      'NO9386011117947',
    ];
    for (const iban of known) {
      assert.ok(isValidIban(iban), iban);
      for (let at = 0; at < iban.length; at++)
        for (const letter of letters) {
          const other = iban.slice(0, at) + letter + iban.slice(at + 1);
          if (looksLikeIban(other)) assert.equal(isValidIban(other), isValidIBAN(other), other);
        }
    }
  });

  test('amounts have the digits of their currency', () => {
    assert.deepEqual(['EUR', 'JPY', 'KWD', 'XAU', 'DEM', 'toString'].map(fractionDigitsOf), [
      2,
      0,
      3,
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('dates are days of the calendar', () => {
    for (const date of ['2028-02-29', '2000-02-29', '2027-12-31']) assert.ok(isDate(date), date);
    for (const date of [
      '2027-02-29',
      '1900-02-29',
      '2027-04-31',
      '2027-13-01',
      '2027-00-10',
      '2027-1-1',
      '12027-01-01',
      '2027-01-01 ',
      '',
    ])
      assert.ok(!isDate(date), date);
    assert.ok(isDateAndTime('2027-08-01T10:00:00Z') && isDateAndTime('2027-08-01T10:00:00.123+02:00'));
    for (const time of [
      '2027-08-01',
      '2027-08-01T10:00Z',
      '2027-08-01T25:00:00Z',
      '2027-08-01T10:00:00',
      '2027-08-01T10:00:00+2',
    ])
      assert.ok(!isDateAndTime(time), time);
  });

  test('a standing order in two parts is as valid as one in one', () => {
    const order = standingOrder({ endDate: '2027-12-01' });
    assert.deepEqual(verdictOf(contract6, request.multipart(multipart(partsOf(order)))), []);
  });
});
