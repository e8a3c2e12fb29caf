import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import type { HeaderFields } from '../../../src/pis/headers.ts';
import { maxDecodedBytes } from '../../../src/request/content-coding.ts';
import {
  authorisationIdsIn,
  type Content,
  contentOf,
  contentOfBody,
  memberOf,
  scaStatusIn,
  transactionStatusIn,
} from '../../../src/request/read-content.ts';

function read(body: string | Buffer, contentType?: string): Content {
  const headers: HeaderFields = contentType === undefined ? [] : [['Content-Type', contentType]];
  const content = contentOf({ headers, body: Buffer.from(body) });
  assert.ok(!(content instanceof Promise), 'a body without a content coding is read at once');
  return content;
}

const decode = async (body: Buffer, ...codings: readonly string[]) =>
  contentOf({ headers: codings.map((coding) => ['Content-Encoding', coding] as const), body });

const idIn = (content: Content) =>
  content.kind === 'json' ? memberOf(content.json, 'paymentId') : undefined;
const whyUnreadable = (content: Content) => (content.kind === 'unreadable' ? content.why : content.kind);

const bigEndian = (text: string) => Buffer.from(text, 'utf16le').swap16();

describe('the content of a response', () => {
  const json = '{"transactionStatus":"RCVD","paymentId":"ü-1"}';

  test('is recognised by its bytes, whatever its label says', () => {
    const types = ['application/json', 'text/plain', 'text/html', 'application/xml', 'image/png', undefined];
    for (const type of types) {
      assert.equal(idIn(read(json, type)), 'ü-1', type);
      assert.equal(transactionStatusIn(read('<D><GrpSts>ACSC</GrpSts></D>', type)), 'ACSC', type);
      assert.equal(read(' \r\n', type).kind, 'empty', type);
    }
  });

  test('is read in UTF-8 and UTF-16, with and without a byte order mark', () => {
    for (const body of [
      `\ufeff${json}`,
      Buffer.from(`\ufeff${json}`, 'utf16le'),
      Buffer.from(json, 'utf16le'),
      Buffer.from(`\n${json}`, 'utf16le'),
      bigEndian(`\ufeff${json}`),
      bigEndian(json),
    ])
      assert.equal(idIn(read(body, 'application/json; charset=iso-8859-15')), 'ü-1');
  });

  test('is read in every encoding that its label or its XML declaration names', () => {
    assert.equal(idIn(read(Buffer.from(json, 'latin1'), 'application/json;charset=ISO-8859-1')), 'ü-1');
    assert.equal(idIn(read(Buffer.from(json, 'latin1'), 'text/plain; a=b; Charset="windows-1252"')), 'ü-1');
    assert.equal(idIn(read(json, 'application/json; charset=utf-16')), 'ü-1', 'a wrong label');
    const cyrillic = Buffer.from('7b227061796d656e744964223a22cfd4227d', 'hex');
    assert.equal(idIn(read(cyrillic, 'application/json; charset=koi8-r')), 'от');
    const xml = Buffer.from(
      "<?xml version='1.0' encoding='iso-8859-1'?><a><b>ü</b><GrpSts>ACSP</GrpSts></a>",
      'latin1',
    );
    assert.equal(read(xml).text?.includes('ü'), true);
  });

  test('is read from every content coding that the gateway offers, also from two at once', async () => {
    const body = Buffer.from(json);
    for (const [encoded, ...codings] of [
      [gzipSync(body), 'gzip'],
      [gzipSync(body), 'X-GZIP'],
      [deflateSync(body), 'deflate'],
      [deflateRawSync(body), 'deflate'],
      [brotliCompressSync(body), 'br'],
      [zstdCompressSync(body), 'zstd'],
      [gzipSync(zstdCompressSync(body)), 'zstd, gzip'],
      [gzipSync(brotliCompressSync(body)), 'br', 'gzip'],
      [body, 'identity'],
    ] as const)
      assert.equal(idIn(await decode(encoded, ...codings)), 'ü-1', codings.join());
  });

  test('names the reason if it cannot be read', async () => {
    assert.equal(whyUnreadable(read('OK')), 'not JSON or XML');
    assert.equal(whyUnreadable(read('{"paymentId":"a')), 'damaged or cut JSON');
    assert.equal(whyUnreadable(read('<a><paymentId>a</paymentId>')), 'damaged or cut XML');
    assert.equal(whyUnreadable(read('<a>&nbsp;</a>')), 'damaged or cut XML');
    assert.equal(whyUnreadable(read('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')), 'a DOCTYPE');
    assert.equal(whyUnreadable(read('<!doctype HTML><p>Back soon<br>')), 'a web page');
    assert.equal(whyUnreadable(read('<html><body/></html>')), 'a web page');
    assert.equal(whyUnreadable(read(json, 'application/json; charset=X-Foo')), 'charset x-foo');
    assert.equal(whyUnreadable(read(json, 'application/json; charset="{}"')), 'charset of an invalid name');
    assert.equal(whyUnreadable(read('<?xml version="1.0" encoding="ibm037"?><a/>')), 'charset ibm037');
    assert.equal(whyUnreadable(await decode(gzipSync(json), 'compress')), 'content coding compress');
    assert.match(whyUnreadable(await decode(Buffer.from(json), 'gzip')), /^content coding gzip: damaged/);
    const tooLong = zstdCompressSync(Buffer.alloc(maxDecodedBytes + 1, ' '));
    assert.match(whyUnreadable(await decode(tooLong, 'zstd')), /^content coding zstd: damaged, or larger/);
  });

  test('keeps the digits of a paymentId that is a number', () => {
    for (const digits of ['7', '9007199254740993', '350251231806012123456', '0.10'])
      assert.equal(idIn(read(`{"paymentId": ${digits}, "nested": {"paymentId": 1}}`)), digits);
  });

  test('is the parsed JSON if the response was parsed before', async () => {
    const headers = [['Content-Encoding', 'compress']] as const;
    const content = contentOf({ json: { paymentId: 'p-1' }, headers, body: Buffer.from('other') });
    assert.ok(!(content instanceof Promise));
    assert.equal(idIn(content), 'p-1');
  });

  test('has no status if the text is long, or has characters that are none', () => {
    assert.equal(transactionStatusIn(read('{"transactionStatus":"ACSC"}')), 'ACSC');
    for (const text of ['AC\\u0000', 'AC\\ud800', '', 'A'.repeat(36)])
      assert.equal(transactionStatusIn(read(`{"transactionStatus":"${text}"}`)), undefined, text);
  });

  test('is never an error, for any bytes', async () => {
    const type = fc.constantFrom('application/json', 'application/xml; charset=utf-16', 'a;charset=big5');
    const start = fc.constantFrom('', '<', '{', '\ufeff', '<a>');
    await fc.assert(
      fc.asyncProperty(fc.uint8Array(), type, start, async (bytes, contentType, beginning) => {
        const body = Buffer.concat([Buffer.from(beginning), bytes]);
        const found = transactionStatusIn(read(body, contentType));
        assert.ok(found === undefined || typeof found === 'string');
        for (const coding of ['gzip', 'br', 'zstd', 'deflate', 'x'])
          assert.equal(typeof (await decode(body, coding)).kind, 'string');
      }),
    );
  });

  test('of several megabytes is unreadable if it is cut or nested too deeply', () => {
    for (const piece of ['<', '<GrpSts ', '<GrpSts> ', '<a:b>', '<GrpSts>A', '<a b="">', '&lt;'])
      assert.equal(read(`<a>${piece.repeat(500_000)}`).kind, 'unreadable');
    assert.equal(read('['.repeat(1_000_000)).kind, 'unreadable');
  });

  test('of the body is that of its present bytes, not that of the JSON that was parsed before', () => {
    const response = { json: { paymentId: 'p-1' }, headers: [], body: Buffer.from('{}') };
    const content = contentOfBody(response);
    assert.ok(!(content instanceof Promise) && content.kind === 'json');
    assert.deepEqual(content.json, {});
  });
});

describe('the ids in a list of authorisations', () => {
  test('have one of two names, and are texts without control characters', () => {
    const mixed = { authorisationIds: ['a', 1, '..', 'b c', 'd'], cancellationIds: ['e'] };
    assert.deepEqual(authorisationIdsIn(mixed), ['a', 'b c', 'd', 'e']);
    assert.deepEqual(authorisationIdsIn({ cancellationIds: ['a'] }), ['a']);
    assert.deepEqual(authorisationIdsIn({ authorisationIds: 'a' }), []);
    assert.deepEqual(authorisationIdsIn(null), []);
  });
});

describe('the transaction status in a response', () => {
  const statusIn = (body: string) => transactionStatusIn(read(body));

  test('is transactionStatus of JSON, whether or not it is a code of ISO 20022', () => {
    assert.equal(statusIn('{"fundsAvailable": true, "transactionStatus": "ACCP"}'), 'ACCP');
    assert.equal(statusIn('{"transactionStatus":"Accepted by us"}'), 'Accepted by us');
  });

  test('is GrpSts of pain.002, with prefixes, attributes, comments, CDATA and white space', () => {
    for (const element of [
      '<GrpSts>ACSC</GrpSts>',
      '<n:GrpSts xmlns:n="urn:n">ACSC</n:GrpSts >',
      '<unbound:GrpSts>\n ACSC\n</unbound:GrpSts>',
      '<GrpSts a="1" b=\'>\'>ACSC</GrpSts>',
      '<!-- <GrpSts>RJCT</GrpSts> --><GrpSts>AC<!-- x -->SC</GrpSts>',
      '<Ustrd><![CDATA[<GrpSts>RJCT</GrpSts>]]></Ustrd><GrpSts><![CDATA[ACSC]]></GrpSts>',
      '<Ustrd>&lt;GrpSts&gt;RJCT&lt;/GrpSts&gt;</Ustrd><GrpSts>&#65;CSC</GrpSts>',
      '<GrpSts>ACSC</GrpSts><PmtInfSts>RJCT</PmtInfSts><TxSts>RJCT</TxSts>',
      '<GrpSts>ACSC</GrpSts><GrpSts>ACSC</GrpSts>',
    ])
      assert.equal(statusIn(`<?xml version="1.0"?>\n<D>${element}</D>`), 'ACSC', element);
  });

  test('is read in UTF-16 and in the encoding that the document declares', () => {
    const report = (encoding: string) =>
      `<?xml version="1.0" encoding="${encoding}"?><D><GrpSts>ACCC</GrpSts></D>`;
    for (const body of [
      Buffer.from(report('UTF-16'), 'utf16le'),
      Buffer.from(`\ufeff${report('UTF-16')}`, 'utf16le'),
      bigEndian(report('utf-16')),
      Buffer.from(report('UTF-16')), // a wrong declaration
      Buffer.from(report('Shift_JIS')),
      Buffer.from(report('windows-1252')),
    ])
      assert.equal(transactionStatusIn(read(body, 'application/xml')), 'ACCC');
  });

  test('is that of all payments or transactions of a pain.002 without a status of its group', () => {
    assert.equal(statusIn('<D><PmtInfSts>ACSP</PmtInfSts><TxSts>RJCT</TxSts></D>'), 'ACSP');
    assert.equal(statusIn('<D><PmtInfSts>ACSP</PmtInfSts><PmtInfSts>ACSP</PmtInfSts></D>'), 'ACSP');
    assert.equal(statusIn('<D><GrpSts/><TxSts>RJCT</TxSts><TxSts>RJCT</TxSts></D>'), 'RJCT');
  });

  test('is unknown if there is none, or more than one interpretation', () => {
    for (const body of [
      ...['', '{', '[]', 'null', '"RJCT"', '{"transactionStatus":7}', '{"transactionStatus":null}'],
      ...['{"payment":{"transactionStatus":"RJCT"}}', '[{"transactionStatus":"RJCT"}]'],
      ...['<a><MyGrpSts>RJCT</MyGrpSts></a>', '<a><GrpStsX>RJCT</GrpStsX></a>', '<GrpSts/>', '<GrpSts>RJCT'],
      '<a><GrpSts>RJCT</GrpSts><GrpSts>ACSP</GrpSts></a>',
      '<a><PmtInfSts>RJCT</PmtInfSts><PmtInfSts>ACSP</PmtInfSts><TxSts>ACSP</TxSts></a>',
      '<a><TxSts>RJCT</TxSts><TxSts>ACSP</TxSts></a>',
      '<a><GrpSts>rejected</GrpSts></a>',
      '<a><GrpSts><b/>RJCT</GrpSts></a>',
      '<!DOCTYPE a><a><GrpSts>RJCT</GrpSts></a>',
    ])
      assert.equal(statusIn(body), undefined, body);
  });

  test('is not mixed up with the status of an authorisation', () => {
    const content = read('{"scaStatus":"finalised","transactionStatus":"ACTC"}');
    assert.deepEqual([scaStatusIn(content), transactionStatusIn(content)], ['finalised', 'ACTC']);
    assert.equal(scaStatusIn(read('{"scaStatus":1}')), undefined);
  });
});
