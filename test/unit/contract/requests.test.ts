import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
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

describe('the signature of a request', () => {
  const body = JSON.stringify(single());
  const sha256 = createHash('sha256').update(body).digest('base64');
  const sha512 = createHash('sha512').update(body).digest('base64');
  const signedWith = (algorithm: string, digest = `SHA-256=${sha256}`) =>
    request.single(undefined, {
      headers: {
        Digest: digest,
        Signature: `keyId="SN=9FA1,CA=CN=Test",algorithm="${algorithm}",headers="digest x-request-id tpp-redirect-uri",signature="QUJD"`,
        'TPP-Signature-Certificate': 'QUJD',
      },
    });

  for (const algorithm of [
    ...[
      'rsa-sha256',
      'RSA-SHA512',
      'RSA_SHA256',
      'rsa_sha512',
      'ecdsa-sha256',
      'ecdsa-p256-sha256',
      'rsa-sha384',
    ],
    ...['SHA-256', 'sha-256', 'SHA256', 'SHA-512', 'SHA256withRSA', 'SHA512WithRSA', 'SHA256withECDSA'],
    ...[
      'rsa-pss-sha256',
      'rsassa-pss-sha512',
      'rsa-v1_5-sha256',
      'RS256',
      'PS256',
      'ES256',
      'hs2019',
      'ed25519',
    ],
  ]) {
    test(`may have the algorithm ${algorithm}`, () => {
      assert.deepEqual(verdictOf(contract11, signedWith(algorithm)), []);
    });
  }

  for (const algorithm of [
    '',
    'none',
    'md5',
    'sha-1',
    'rsa-sha1',
    'SHA1withRSA',
    'hmac-sha256',
    'rsa',
    'HS256',
    '256',
  ])
    test(`must not have the algorithm "${algorithm}"`, () => {
      assert.deepEqual(harmfulOf(contract11, signedWith(algorithm)), ['signature headers/Signature']);
    });

  test('may have a digest with SHA-256 or SHA-512 in any letter case', () => {
    for (const digest of [`sha-256=${sha256}`, `Sha-512=${sha512}`, `SHA-512=${sha512}`])
      assert.deepEqual(verdictOf(contract11, signedWith('SHA-512', digest)), []);
    assert.deepEqual(harmfulOf(contract11, signedWith('SHA-512', `sha-512=${sha256}`)), [
      'digest headers/Digest',
    ]);
  });
});

describe('a text/plain body', () => {
  const asText = { headers: { 'Content-Type': 'text/plain; charset=iso-8859-1' } };

  test('is not refused because it is neither XML nor JSON', () => {
    const dtazv = '0256Q 2002091234567890COMPANY';
    for (const judged of [
      request.xml(dtazv, asText),
      request.single(undefined, { ...asText, body: dtazv }),
    ]) {
      assert.deepEqual(verdictOf(contract11, judged), [
        'notable content-type headers/Content-Type may-be-refused',
      ]);
      assert.deepEqual(harmfulOf(contract6, judged), ['content-type headers/Content-Type']);
    }
  });

  test('is judged as XML or JSON if it begins like that', () => {
    for (const start of ['', ' \r\n', '\ufeff']) {
      const cut = request.xml(`${start}<?xml version="1.0"?><Document>`, asText);
      assert.ok(harmfulOf(contract11, cut).length > 0, start);
      const json = request.single(undefined, { ...asText, body: `${start}{` });
      assert.ok(harmfulOf(contract11, json).length > 0, start);
    }
  });
});

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

  test('do not include 1999-01-01 in pain.001, which means "as soon as possible"', () => {
    const receivedAtMs = Date.UTC(2026, 5, 9);
    const on = (day: string) => pain001().replace('2027-02-15', day);
    const newer = (day: string) =>
      on(day)
        .replace('pain.001.001.03', 'pain.001.001.09')
        .replaceAll('BIC>', 'BICFI>')
        .replace(/<ReqdExctnDt>(.*?)</, '<ReqdExctnDt><Dt>$1</Dt><');
    for (const document of [on('1999-01-01'), on('1999-01-01+01:00'), newer('1999-01-01')]) {
      assert.deepEqual(verdictOf(amsterdam, request.xml(document, { receivedAtMs })), []);
    }
    for (const document of [on('1999-01-02'), newer('1998-12-31')]) {
      assert.deepEqual(harmfulOf(amsterdam, request.xml(document, { receivedAtMs })), [
        'date-in-past xml/ReqdExctnDt',
      ]);
    }
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
          const isPossible = !['00', '01', '99'].includes(other.slice(2, 4));
          if (looksLikeIban(other)) assert.equal(isValidIban(other), isPossible && isValidIBAN(other), other);
        }
    }
  });

  test('an IBAN with the check digits 00, 01 or 99 is invalid, although its remainder is 1', () => {
    const accounts = Array.from(
      { length: 2_000 },
      (_, index) => `10010010${String(index).padStart(10, '0')}`,
    );
    const fits = (account: string, digits: string) => BigInt(`${account}1314${digits}`) % 97n === 1n; // DE is 1314
    for (const digits of ['00', '01', '99', '02', '98']) {
      const fitting = accounts.filter((account) => fits(account, digits));
      assert.ok(fitting.length > 10, digits);
      const isPossible = digits === '02' || digits === '98';
      for (const account of fitting) assert.equal(isValidIban(`DE${digits}${account}`), isPossible, digits);
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
