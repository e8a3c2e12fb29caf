/** Documents of pain.001: structure, totals, and what service and product of the path require. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { contract11, harmfulOf, pain001, request, transferXml, verdictOf } from '../../kit/judged.ts';

/** The document with one change. */
function changed(from: string | RegExp, to: string, document = pain001()): string {
  const result = document.replace(from, to);
  assert.notEqual(result, document, `${from} is not in the document`);
  return result;
}

const without = (element: string, document = pain001()) =>
  changed(new RegExp(`<${element}>.*?</${element}>|<${element}[ />].*?</${element}>`, 's'), '', document);

/** As the banks of other versions expect it. */
const inVersion = (version: '02' | '08' | '09', document = pain001()) => {
  const named = document.replace('pain.001.001.03', `pain.001.001.${version}`);
  if (version === '02') {
    return named
      .replaceAll('CstmrCdtTrfInitn', 'pain.001.001.02')
      .replace('<InitgPty>', '<Grpg>MIXD</Grpg><InitgPty>');
  }
  return named.replaceAll('BIC>', 'BICFI>').replace(/<ReqdExctnDt>(.*?)</, '<ReqdExctnDt><Dt>$1</Dt><');
};

const bulkOf = (amounts: readonly string[], count = amounts.length) =>
  pain001(amounts.map((amount) => transferXml(`<InstdAmt Ccy="EUR">${amount}</InstdAmt>`)).join(''), count);
const withSums = (document: string, header: string, group = header) =>
  changed(
    '</PmtMtd>',
    `</PmtMtd><CtrlSum>${group}</CtrlSum>`,
    changed('</NbOfTxs>', `</NbOfTxs><CtrlSum>${header}</CtrlSum>`, document),
  );

const inSingle = (document: string) => verdictOf(contract11, request.xml(document));
const inBulk = (document: string) => verdictOf(contract11, request.xml(document, {}, 'bulk-payments'));
const inProduct = (product: string, document: string) =>
  verdictOf(contract11, request.xml(document, { product: `pain.001-${product}` }));

type Row = readonly [name: string, document: string, expected: string];

const missing: readonly Row[] = [
  ['GrpHdr', without('GrpHdr'), 'required xml/CstmrCdtTrfInitn/GrpHdr'],
  ['PmtInf', without('PmtInf'), 'required xml/CstmrCdtTrfInitn/PmtInf'],
  ['MsgId', without('MsgId'), 'required xml/GrpHdr/MsgId'],
  ['CreDtTm', without('CreDtTm'), 'required xml/GrpHdr/CreDtTm'],
  ['NbOfTxs', without('NbOfTxs'), 'required xml/GrpHdr/NbOfTxs'],
  ['InitgPty', without('InitgPty'), 'required xml/GrpHdr/InitgPty'],
  ['PmtInfId', without('PmtInfId'), 'required xml/PmtInf/PmtInfId'],
  ['PmtMtd', without('PmtMtd'), 'required xml/PmtInf/PmtMtd'],
  ['ReqdExctnDt', without('ReqdExctnDt'), 'required xml/PmtInf/ReqdExctnDt'],
  ['Dbtr', without('Dbtr'), 'required xml/PmtInf/Dbtr'],
  ['DbtrAcct', without('DbtrAcct'), 'required xml/PmtInf/DbtrAcct'],
  ['FinInstnId', without('FinInstnId'), 'required xml/DbtrAgt/FinInstnId'],
  ['all transfers', pain001('', 0), 'required xml/PmtInf/CdtTrfTxInf'],
  ['PmtId', without('PmtId'), 'required xml/CdtTrfTxInf/PmtId'],
  ['EndToEndId', without('EndToEndId'), 'required xml/PmtId/EndToEndId'],
  ['Amt', without('Amt'), 'required xml/CdtTrfTxInf/Amt'],
  ['InstdAmt', pain001(transferXml('')), 'required xml/Amt/InstdAmt'],
  ['Cdtr', without('Cdtr'), 'required xml/CdtTrfTxInf/Cdtr'],
  ['the name of Cdtr', changed('<Nm>Merchant123</Nm>', ''), 'required xml/Cdtr/Nm'],
  ['CdtrAcct', without('CdtrAcct'), 'required xml/CdtTrfTxInf/CdtrAcct'],
  ['the IBAN of DbtrAcct', without('IBAN'), 'required xml/Id/IBAN'],
];

const misplaced: readonly Row[] = [
  [
    'CreDtTm before MsgId',
    changed(/(<MsgId>.*?)(<CreDtTm>.*?<\/CreDtTm>)/s, '$2$1'),
    'order xml/GrpHdr/MsgId',
  ],
  [
    'Dbtr behind DbtrAcct',
    changed(/(<Dbtr>.*?)(<DbtrAcct>.*?<\/DbtrAcct>)/s, '$2$1'),
    'order xml/PmtInf/Dbtr',
  ],
  [
    'Cdtr behind CdtrAcct',
    changed(/(<Cdtr>.*?)(<CdtrAcct>.*?<\/CdtrAcct>)/s, '$2$1'),
    'order xml/CdtTrfTxInf/Cdtr',
  ],
  [
    'ChrgBr behind the transfers',
    changed(/(<ChrgBr>.*?<\/ChrgBr>)(.*)(<\/PmtInf>)/s, '$2$1$3'),
    'order xml/PmtInf/ChrgBr',
  ],
  [
    'GrpHdr behind PmtInf',
    changed(/(<GrpHdr>.*?<\/GrpHdr>)(.*<\/PmtInf>)/s, '$2$1'),
    'order xml/CstmrCdtTrfInitn/GrpHdr',
  ],
  ['MsgId twice', changed('<MsgId>', '<MsgId>M-0</MsgId><MsgId>'), 'repeated xml/GrpHdr/MsgId'],
  [
    'Dbtr twice, in two places',
    changed('<ChrgBr>', '<Dbtr><Nm>x</Nm></Dbtr><ChrgBr>'),
    'repeated xml/PmtInf/Dbtr',
  ],
  ['GrpHdr twice', changed(/(<GrpHdr>.*<\/GrpHdr>)/s, '$1$1'), 'repeated xml/CstmrCdtTrfInitn/GrpHdr'],
  ['IBAN and Othr', changed('</IBAN>', '</IBAN><Othr><Id>1</Id></Othr>'), 'repeated xml/Id/Othr'],
  [
    'the message twice',
    changed(/(<CstmrCdtTrfInitn>.*<\/CstmrCdtTrfInitn>)/s, '$1$1'),
    'repeated xml/Document/CstmrCdtTrfInitn,several-transfers xml/CdtTrfTxInf',
  ],
  ['an unknown element', changed('<MsgId>', '<canary/><MsgId>'), 'unknown xml/GrpHdr/*'],
  [
    'an element in lower case',
    changed('<ChrgBr>SLEV</ChrgBr>', '<chrgbr>SLEV</chrgbr>'),
    'unknown xml/PmtInf/*',
  ],
  ['an element of another namespace', changed('<ChrgBr>', '<ChrgBr xmlns="urn:x">'), 'unknown xml/PmtInf/*'],
  ['an element inside a text', changed('M-1', 'M<b/>1'), 'unknown xml/MsgId/*'],
  ['a text between elements', changed('<PmtInfId>', 'canary<PmtInfId>'), 'type xml/PmtInf'],
  ['a text behind elements', changed('</PmtInf>', 'canary</PmtInf>'), 'type xml/PmtInf'],
  [
    'the BICFI of newer versions',
    changed('<BIC>DEUTDEFFXXX</BIC>', '<BICFI>DEUTDEFFXXX</BICFI>'),
    'unknown xml/FinInstnId/*',
  ],
  ['the Dt of newer versions', changed('>2027-02-15<', '><Dt>2027-02-15</Dt><'), 'unknown xml/ReqdExctnDt/*'],
];

const wrongTexts: readonly Row[] = [
  ['an empty MsgId', changed('M-1', ''), 'empty xml/MsgId'],
  ['a MsgId of 36 characters', changed('M-1', 'x'.repeat(36)), 'max-length xml/MsgId'],
  ['a PmtInfId of 36 characters', changed('P-1', 'x'.repeat(36)), 'max-length xml/PmtInfId'],
  ['an EndToEndId of 36 characters', changed('E-1', 'x'.repeat(36)), 'max-length xml/EndToEndId'],
  ['a name of 141 characters', changed('PSU Name', 'x'.repeat(141)), 'max-length xml/Nm'],
  [
    'a remittance text of 141 characters',
    changed('Ref Number Merchant', 'x'.repeat(141)),
    'max-length xml/Ustrd',
  ],
  ['a day as the time of creation', changed('2027-02-14T20:23:34.000Z', '2027-02-14'), 'format xml/CreDtTm'],
  ['a day of creation that does not exist', changed('2027-02-14T', '2027-02-30T'), 'format xml/CreDtTm'],
  ['a time of creation with a space', changed('14T20', '14 20'), 'format xml/CreDtTm'],
  ['the 30th of February', changed('2027-02-15', '2027-02-30'), 'format xml/ReqdExctnDt'],
  ['no day', changed('>2027-02-15<', '><'), 'format xml/ReqdExctnDt'],
  ['a number in words', changed('<NbOfTxs>1<', '<NbOfTxs>one<'), 'pattern xml/NbOfTxs'],
  ['a number of 16 digits', changed('<NbOfTxs>1<', `<NbOfTxs>${'0'.repeat(15)}1<`), 'pattern xml/NbOfTxs'],
  ['a sum with a comma', withSums(pain001(), '123,50', '123.50'), 'pattern xml/CtrlSum'],
  ['a sum with an exponent', withSums(pain001(), '1.235e2', '123.50'), 'pattern xml/CtrlSum'],
  ['a sum of 19 digits', withSums(pain001(), `123.5${'0'.repeat(16)}`, '123.50'), 'pattern xml/CtrlSum'],
  ['a direct debit', changed('TRF', 'DD'), 'enum xml/PmtMtd'],
  ['an unknown bearer of charges', changed('SLEV', 'OUR'), 'enum xml/ChrgBr'],
  ['yes as a truth value', changed('</PmtMtd>', '</PmtMtd><BtchBookg>yes</BtchBookg>'), 'type xml/BtchBookg'],
  ['a malformed BIC', changed('DEUTDEFFXXX', 'DEUTDE'), 'pattern xml/BIC'],
  [
    'a country in words',
    changed('</Nm></Dbtr>', '</Nm><PstlAdr><Ctry>Germany</Ctry></PstlAdr></Dbtr>'),
    'pattern xml/Ctry',
  ],
  ['a service level of 5 characters', changed('<Cd>SEPA', '<Cd>SEPAX'), 'max-length xml/Cd'],
  [
    'an amount with an exponent',
    pain001(transferXml('<InstdAmt Ccy="EUR">1e3</InstdAmt>')),
    'pattern xml/InstdAmt',
  ],
  [
    'an equivalent amount of nothing',
    pain001(transferXml('<EqvtAmt><Amt Ccy="EUR">0.00</Amt><CcyOfTrf>USD</CcyOfTrf></EqvtAmt>')),
    'amount-positive xml/EqvtAmt',
  ],
];

describe('the structure of pain.001', () => {
  for (const [title, rows] of Object.entries({
    'requires elements': missing,
    'has an order': misplaced,
    'bounds texts': wrongTexts,
  })) {
    test(title, () => {
      const found = rows.map(([name, document]) => [
        name,
        harmfulOf(contract11, request.xml(document)).join(),
      ]);
      assert.deepEqual(
        found,
        rows.map(([name, , expected]) => [name, expected]),
      );
    });
  }

  test('has nothing against a valid document, in each version of ISO 20022', () => {
    for (const document of [pain001(), inVersion('02'), inVersion('08'), inVersion('09')])
      assert.deepEqual(inSingle(document), []);
    for (const variant of ['002', '003'])
      assert.deepEqual(inSingle(changed('pain.001.001.03', `pain.001.${variant}.03`)), []);
  });

  test('has nothing against elements with a prefix, and white space around numbers and times', () => {
    const prefixed = pain001()
      .replaceAll(/<(\/?)(?=[A-Z])/g, '<$1p:')
      .replace('xmlns=', 'xmlns:p=');
    assert.match(prefixed, /<p:Document xmlns:p=/);
    assert.deepEqual(inSingle(prefixed), []);
    assert.deepEqual(
      inSingle(withSums(changed('2027-02-14T20:23:34.000Z', '\n2027-02-14T20:23:34 '), ' 123.5\t')),
      [],
    );
  });

  test('has nothing against what TPPs rarely send', () => {
    const rich = changed(
      /<Cdtr>.*<\/RmtInf>/s,
      `<ChqInstr><canary/></ChqInstr><UltmtDbtr><Nm>x</Nm></UltmtDbtr>
      <CdtrAgt><FinInstnId><ClrSysMmbId><MmbId>1</MmbId></ClrSysMmbId></FinInstnId></CdtrAgt>
      <Cdtr><Nm>Merchant123</Nm><PstlAdr><StrtNm>x</StrtNm><Ctry>DE</Ctry><AdrLine>a</AdrLine><AdrLine>b</AdrLine></PstlAdr></Cdtr>
      <CdtrAcct><Id><Othr><Id>1234</Id></Othr></Id><Ccy>EUR</Ccy></CdtrAcct>
      <InstrForCdtrAgt><Cd>HOLD</Cd></InstrForCdtrAgt><InstrForCdtrAgt><Cd>PHOB</Cd></InstrForCdtrAgt>
      <Purp><Cd>SALA</Cd></Purp><RmtInf><Ustrd>a</Ustrd><Ustrd>b</Ustrd><Strd><CdtrRefInf/></Strd></RmtInf>`,
    );
    assert.deepEqual(inSingle(rich), []);
  });

  test('differs between the versions of ISO 20022', () => {
    const uetr = '<UETR>8a562c67-ca16-48ba-b074-65581be6f001</UETR>';
    const transfer = transferXml().replace('</PmtId>', `${uetr}</PmtId>`);
    assert.deepEqual(inSingle(inVersion('09', pain001(transfer))), []);
    assert.deepEqual(inSingle(pain001(transfer)), ['harmful unknown xml/PmtId/* refused']);
    assert.deepEqual(inSingle(changed('<Dt>', '<Day>', inVersion('09').replace('</Dt>', '</Day>'))), [
      'harmful unknown xml/ReqdExctnDt/* refused',
      'harmful required xml/ReqdExctnDt/Dt refused',
    ]);
    assert.deepEqual(inSingle(without('Grpg', inVersion('02'))), [
      'harmful required xml/GrpHdr/Grpg refused',
    ]);
    assert.deepEqual(inSingle(changed(/<Nm>PSU Name/, `<Nm>${'x'.repeat(71)}`, inVersion('02'))), [
      'harmful max-length xml/Nm refused',
    ]);
  });

  test('counts characters, not units of UTF-16', () => {
    assert.deepEqual(inSingle(changed('M-1', '\u{1F600}'.repeat(35))), []);
    assert.deepEqual(inSingle(changed('M-1', '\u{1F600}'.repeat(36))), [
      'harmful max-length xml/MsgId refused',
    ]);
  });

  test('refuses nothing because of the structure of a version or variant that it does not know', () => {
    for (const namespace of [
      'urn:iso:std:iso:20022:tech:xsd:pain.001.001.11',
      'urn:iso:std:iso:20022:tech:xsd:pain.001.001.05',
      'http://www.six-interbank-clearing.com/de/pain.001.001.03.ch.02.xsd',
      'ISO:pain.001.001.03:APC:STUZZA:payments:003',
    ]) {
      const document = without('CreDtTm').replace(/urn:[^"]*/, () => namespace);
      const found = inSingle(document);
      assert.ok(found.includes('notable message-version xml may-be-refused'), namespace);
      assert.deepEqual(
        found.filter((one) => one.startsWith('harmful')),
        [],
        namespace,
      );
    }
    assert.deepEqual(inSingle(without('CreDtTm').replace('pain.001.001.03', 'pain.001.001.05')), [
      'notable message-version xml may-be-refused',
      'notable required xml/GrpHdr/CreDtTm may-be-refused',
    ]);
  });

  test('knows that the published example has no DbtrAgt', () => {
    assert.deepEqual(inSingle(without('DbtrAgt')), ['usual required xml/PmtInf/DbtrAgt may-be-refused']);
  });

  test('shows neither names nor texts of the document', () => {
    const found = inSingle(
      changed(
        /<GrpHdr>.*<\/GrpHdr>/s,
        '<canary><canary>canary</canary></canary><GrpHdr canary="x">canary<canary/></GrpHdr>',
      ),
    );
    assert.ok(found.length > 4 && !/canary/.test(found.join()), found.join());
  });
});

describe('the totals of pain.001', () => {
  test('are the number of transfers, in the document and in each group', () => {
    assert.deepEqual(inBulk(bulkOf(['1', '2', '3'])), []);
    assert.deepEqual(inBulk(bulkOf(['1', '2'], 3)), [
      'notable transfer-count xml/GrpHdr/NbOfTxs may-be-refused',
    ]);
    const wrongGroup = changed('</PmtMtd>', '</PmtMtd><NbOfTxs>1</NbOfTxs>', bulkOf(['1', '2']));
    assert.deepEqual(inBulk(wrongGroup), ['notable transfer-count xml/PmtInf/NbOfTxs may-be-refused']);
  });

  test('are exact sums', () => {
    const tenths = Array.from({ length: 10 }, () => '0.1');
    assert.deepEqual(inBulk(withSums(bulkOf(tenths), '1')), []);
    assert.deepEqual(inBulk(withSums(bulkOf(['0.1', '0.2']), '0.3')), []);
    const large = ['999999999999.99', '0.01', '0.01'];
    assert.deepEqual(inBulk(withSums(bulkOf(large), '1000000000000.01')), []);
    assert.deepEqual(inBulk(withSums(bulkOf(large), '1000000000000.02', '+1000000000000.010')), [
      'notable control-sum xml/GrpHdr/CtrlSum may-be-refused',
    ]);
    assert.deepEqual(inBulk(withSums(bulkOf(['.5', '1.']), '01.50', '1.51')), [
      'notable control-sum xml/PmtInf/CtrlSum may-be-refused',
    ]);
  });

  test('are exact where floating-point numbers are not', () => {
    assert.equal(Number('9007199254740993.93'), Number('9007199254740993.92'));
    const found = inBulk(
      withSums(bulkOf(['9007199254740993.93']), '9007199254740993.92', '9007199254740993.93'),
    );
    assert.deepEqual(found, [
      'notable significant-digits xml/InstdAmt may-be-refused',
      'notable control-sum xml/GrpHdr/CtrlSum may-be-refused',
    ]);
  });

  test('are those of each group and of all of them', () => {
    const [head = '', group = '', end = ''] = bulkOf(['1', '2'], 4).split(/(<PmtInf>.*<\/PmtInf>)/s);
    const groups = (sums: readonly string[]) =>
      sums
        .map((sum) => changed('</PmtMtd>', `</PmtMtd><NbOfTxs>2</NbOfTxs><CtrlSum>${sum}</CtrlSum>`, group))
        .join('');
    const document = (sums: readonly string[], total: string) =>
      changed('</NbOfTxs>', `</NbOfTxs><CtrlSum>${total}</CtrlSum>`, `${head}${groups(sums)}${end}`);
    assert.deepEqual(inBulk(document(['3', '3.00'], '6')), []);
    assert.deepEqual(inBulk(document(['3', '6'], '6')), [
      'notable control-sum xml/PmtInf/CtrlSum may-be-refused',
    ]);
    assert.deepEqual(inBulk(document(['3', '3'], '3')), [
      'notable control-sum xml/GrpHdr/CtrlSum may-be-refused',
    ]);
  });

  test('are not computed with amounts that are none', () => {
    assert.deepEqual(inBulk(withSums(bulkOf(['1', 'x']), '2')), ['harmful pattern xml/InstdAmt refused']);
    const foreign = transferXml('<EqvtAmt><Amt Ccy="EUR">5</Amt><CcyOfTrf>USD</CcyOfTrf></EqvtAmt>');
    assert.deepEqual(inBulk(withSums(pain001(foreign), '7')), []);
  });
});

describe('service and product of the path', () => {
  test('a single payment has one transfer, a bulk several', () => {
    const two = bulkOf(['1', '2']);
    assert.deepEqual(inBulk(two), []);
    assert.deepEqual(inSingle(two), ['harmful several-transfers xml/CdtTrfTxInf refused']);
    const twoGroups = changed(/(<PmtInf>.*<\/PmtInf>)/s, '$1$1', pain001(transferXml(), 2));
    assert.deepEqual(inBulk(twoGroups), []);
    assert.deepEqual(inSingle(twoGroups), ['harmful several-transfers xml/CdtTrfTxInf refused']);
  });

  test('an instant payment says so in the document', () => {
    const instrument = '<LclInstrm><Cd>INST</Cd></LclInstrm>';
    const inGroup = changed('</SvcLvl>', `</SvcLvl>${instrument}`);
    const inTransfer = changed('<Amt>', `<PmtTpInf>${instrument}</PmtTpInf><Amt>`);
    const other = ['notable product xml/LclInstrm may-be-refused'];
    for (const document of [inGroup, inTransfer]) {
      assert.deepEqual(inProduct('instant-sepa-credit-transfers', document), []);
      assert.deepEqual(inProduct('sepa-credit-transfers', document), other);
      assert.deepEqual(inProduct('target-2-payments', document), []);
    }
    assert.deepEqual(inProduct('instant-sepa-credit-transfers', pain001()), other);
    const instantBulk = changed('</SvcLvl>', `</SvcLvl>${instrument}`, bulkOf(['1', '2']));
    const inBulkOfProduct = request.xml(
      instantBulk,
      { product: 'pain.001-instant-sepa-credit-transfers' },
      'bulk-payments',
    );
    assert.deepEqual(verdictOf(contract11, inBulkOfProduct), []);
    const first = transferXml().replace('<Amt>', `<PmtTpInf>${instrument}</PmtTpInf><Amt>`);
    const mixed = request.xml(
      pain001(first + transferXml(), 2),
      { product: 'pain.001-instant-sepa-credit-transfers' },
      'bulk-payments',
    );
    assert.deepEqual(verdictOf(contract11, mixed), other);
  });

  test('a SEPA credit transfer is in euro, with shared charges, to an account', () => {
    const dollars = pain001(transferXml('<InstdAmt Ccy="USD">1</InstdAmt>'));
    assert.deepEqual(inSingle(dollars), ['notable product xml/InstdAmt/Ccy may-be-refused']);
    assert.deepEqual(inProduct('cross-border-credit-transfers', dollars), []);
    const shared = changed('SLEV', 'SHAR');
    assert.deepEqual(inSingle(shared), ['notable product xml/PmtInf/ChrgBr may-be-refused']);
    assert.deepEqual(inProduct('cross-border-credit-transfers', shared), []);
    assert.deepEqual(inProduct('cross-border-credit-transfers', without('CdtrAcct', without('Cdtr'))), [
      'notable required xml/CdtTrfTxInf/Cdtr may-be-refused',
      'notable required xml/CdtTrfTxInf/CdtrAcct may-be-refused',
    ]);
  });

  test('a cheque is no credit transfer', () => {
    assert.deepEqual(inSingle(changed('TRF', 'CHK')), ['notable product xml/PmtInf/PmtMtd may-be-refused']);
    const variant = changed('pain.001.001.03', 'pain.001.003.03', changed('TRF', 'CHK'));
    assert.ok(inSingle(variant).includes('harmful enum xml/PmtMtd refused'));
  });
});
