import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  endsAuthorisation,
  finalityOf,
  scaStatusIn,
  transactionStatuses,
  transactionStatusIn,
} from '../../../src/pis/transaction-status.ts';

describe('finalityOf a transaction status', () => {
  const finalCodes = {
    payments: ['ACCC', 'RJCT', 'CANC'],
    'periodic-payments': ['RJCT', 'CANC'],
    'bulk-payments': ['ACCC', 'RJCT', 'CANC'],
  };
  for (const [service, final] of Object.entries(finalCodes)) {
    test(`of ${service} is final for ${final.join(', ')}, settled for ACSC, and pending for all others`, () => {
      assert.equal(transactionStatuses.length, 14);
      for (const code of transactionStatuses) {
        const expected = final.includes(code) ? 'final' : code === 'ACSC' ? 'settled' : 'pending';
        assert.equal(finalityOf(service, code), expected, code);
      }
    });
  }

  test('is pending for unknown codes and unknown payment services', () => {
    for (const code of ['ACCT', '', 'rjct', 'constructor', '__proto__']) {
      assert.equal(finalityOf('payments', code), 'pending', code);
    }
    for (const service of ['card-payments', 'toString', '']) {
      for (const code of transactionStatuses) assert.equal(finalityOf(service, code), 'pending', service);
    }
  });
});

describe('transactionStatusIn a response body', () => {
  const read = (body: string, contentType?: string) => transactionStatusIn(Buffer.from(body), contentType);

  test('returns transactionStatus of JSON, for any parameters and JSON-based types', () => {
    const body = '{"fundsAvailable": true, "transactionStatus": "ACCP", "scaStatus": "started"}';

    assert.equal(read(body, 'application/json'), 'ACCP');
    assert.equal(read(body, 'Application/JSON ; charset=UTF-8'), 'ACCP');
    assert.equal(read(body, 'application/vnd.bank+json'), 'ACCP');
  });

  test('returns GrpSts of pain.002, with or without a namespace prefix', () => {
    const report = (tag: string) => `<?xml version="1.0"?><D><X><${tag}>ACSC</${tag}></X></D>`;

    assert.equal(read(report('GrpSts'), 'application/xml'), 'ACSC');
    assert.equal(read(report('ns2:GrpSts'), 'text/xml; charset=utf-8'), 'ACSC');
    assert.equal(read('<a:GrpSts xmlns:a="urn:x">\n ACCT\n</a:GrpSts >', 'application/pain.002+xml'), 'ACCT');
  });

  test('returns a transactionStatus that is no code of ISO 20022', () => {
    assert.equal(read('{"transactionStatus":"Accepted by us"}', 'application/json'), 'Accepted by us');
  });

  test('returns undefined if there is no status, or more than one interpretation', () => {
    const json = ['', '{', '[]', 'null', '"RJCT"', '{"transactionStatus":7}', '{"transactionStatus":null}'];
    const nested = ['{"payment":{"transactionStatus":"RJCT"}}', '[{"transactionStatus":"RJCT"}]'];
    for (const body of [...json, ...nested]) assert.equal(read(body, 'application/json'), undefined, body);

    const xml = [
      '<PmtInfSts>RJCT</PmtInfSts>',
      '<MyGrpSts>RJCT</MyGrpSts>',
      '<GrpStsX>RJCT</GrpStsX>',
      '<GrpSts/>',
      '<GrpSts></GrpSts>',
      '<GrpSts>RJCT',
      '<!-- <GrpSts>RJCT</GrpSts> --><GrpSts>ACSP</GrpSts>',
      '<Ustrd><![CDATA[<GrpSts>RJCT</GrpSts>]]></Ustrd>',
      '<GrpSts>RJCT</GrpSts><GrpSts>ACSP</GrpSts>',
      '&lt;GrpSts&gt;RJCT&lt;/GrpSts&gt;',
    ];
    for (const body of xml) assert.equal(read(body, 'application/xml'), undefined, body);

    assert.equal(read('{"transactionStatus":"RJCT"}'), undefined);
    assert.equal(read('{"transactionStatus":"RJCT"}', 'text/html'), undefined);
    assert.equal(read('<GrpSts>RJCT</GrpSts>', 'application/json'), undefined);
  });

  test('never throws, for any bytes', () => {
    const types = fc.constantFrom('application/json', 'application/xml');
    fc.assert(
      fc.property(fc.uint8Array(), types, (bytes, type) => {
        const found = transactionStatusIn(Buffer.from(bytes), type);
        assert.ok(found === undefined || typeof found === 'string');
      }),
    );
  });

  test('scans bodies of several megabytes in linear time', { timeout: 5_000 }, () => {
    for (const piece of ['<', '<GrpSts ', '<GrpSts> ', 'a:', '<a.', '<GrpSts>A']) {
      read(piece.repeat(500_000), 'application/xml');
    }
    assert.equal(read(`<GrpSts>${' '.repeat(1_000_000)}`, 'application/xml'), undefined);
    assert.equal(read('['.repeat(1_000_000), 'application/json'), undefined);
  });
});

describe('scaStatusIn a response body', () => {
  test('returns scaStatus of JSON, and of nothing else', () => {
    const body = Buffer.from('{"scaStatus":"finalised","transactionStatus":"ACTC"}');
    assert.equal(scaStatusIn(body, 'application/json'), 'finalised');
    assert.equal(scaStatusIn(body, 'application/xml'), undefined);
    assert.equal(scaStatusIn(Buffer.from('{"scaStatus":1}'), 'application/json'), undefined);
  });

  test('ends an authorisation if it is finalised, failed or exempted', () => {
    for (const status of ['finalised', 'failed', 'exempted']) assert.ok(endsAuthorisation(status), status);
    for (const status of ['received', 'started', 'unconfirmed', ''])
      assert.ok(!endsAuthorisation(status), status);
  });
});
