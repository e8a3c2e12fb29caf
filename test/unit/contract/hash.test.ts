import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import { Ajv } from 'ajv';
import { answerDefinitions } from '../../../src/contract/answer-schemas.ts';
import { sharedDefinitions } from '../../../src/contract/field-schemas.ts';
import { requestDefinitions } from '../../../src/contract/request-schemas.ts';
import { ofVersion, standardVersions } from '../../../src/contract/standard-versions.ts';
import {
  bothContracts,
  bulk,
  multipart,
  pain001,
  partsOf,
  periodic,
  request,
  single,
  standingOrder,
  transferXml,
  verdictOf,
} from '../../kit/judged.ts';

/** One message for each rule in code. */
const judged = [
  request.single(single({ creditorAccount: { iban: 'DE03100100109307118603' } })),
  request.single(single({ creditorAccount: { iban: 'DE23100120020123456789' }, debtorAccount: {} })),
  request.single(single({ instructedAmount: { currency: 'XYZ', amount: '-1.2345' }, creditorAccount: {} })),
  request.single(single({ instructedAmount: { currency: 'HRK', amount: '12345678901234.5' } })),
  request.single(single({ canary: 1, requestedExecutionDate: '2016-01-01', endToEndIdentification: '' })),
  request.single(undefined, { body: '{"a":1,"a":2}' }),
  request.single(undefined, {
    headers: { Digest: 'SHA-256=QUJD,MD5=QUJD', Signature: 'x', Accept: 'text/html' },
  }),
  request.single(undefined, {
    headers: { 'Content-Type': 'text/plain', 'PSU-IP-Address': '::1', 'PSU-Http-Method': 'x' },
  }),
  request.bulk(
    bulk({ batchBookingPreferred: 'true' }, { instructedAmount: { currency: 'JPY', amount: '0.5' } }),
  ),
  request.periodic(periodic({ endDate: '2027-01-01', dayOfExecution: '01', frequency: 'MonthlyVariable' })),
  request.xml(pain001(transferXml('<InstdAmt>0</InstdAmt>', ' DE03100100109307118603'))),
  request.xml('<!DOCTYPE a><a/>'),
  request.xml(
    pain001(transferXml('<InstdAmt Ccy="USD">2</InstdAmt>', 'none').repeat(2), 3)
      .replace('</NbOfTxs>', '</NbOfTxs><CtrlSum>3</CtrlSum><canary/>')
      .replace('M-1', 'x'.repeat(36))
      .replace(/<PmtInfId>.*(<Dbtr>.*<\/Dbtr>)/s, 'canary$1<PmtMtd>CHK</PmtMtd>')
      .replace('SEPA', ''),
  ),
  request.xml(pain001('').replace('pain.001.001.03', 'pain.001.001.10')),
  request.multipart(multipart(partsOf(standingOrder({ endDate: '2027-01-01' })).slice(1))),
  request.authorisation({ psuData: {}, scaAuthenticationData: '1' }),
  request.single(undefined, { headers: { 'Content-Encoding': 'gzip' }, body: 'xyz' }),
  request.read('getPayment', { initiatedAs: { paymentService: 'bulk-payments', paymentProduct: 'other' } }),
];

/** To be replaced with the new value whenever the test below asks for it. */
const expected = { hashes: '53b5b0634f2fce0f,083c0b094423d8a4', verdicts: 'd4ff148ac4aee04b' };

describe('the hash of a contract', () => {
  test('changes whenever verdicts change', () => {
    const digestOf = (value: unknown) =>
      createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);
    const found = {
      hashes: bothContracts.map(({ hash }) => hash).join(),
      verdicts: digestOf(bothContracts.map((contract) => judged.map((one) => verdictOf(contract, one)))),
    };
    if (found.verdicts !== expected.verdicts)
      assert.notEqual(found.hashes, expected.hashes, 'raise ruleRevision in src/contract/contract.ts');
    assert.deepEqual(found, expected, 'update the values in this test');
  });
});

describe('the schemas', () => {
  test('are valid JSON Schemas', () => {
    const ajv = new Ajv({ strict: false });
    for (const version of standardVersions)
      for (const [name, schema] of Object.entries({
        ...sharedDefinitions,
        ...requestDefinitions,
        ...answerDefinitions,
      }))
        assert.ok(ajv.validateSchema(ofVersion(version, schema)), `${version} ${name}: ${ajv.errorsText()}`);
  });

  test('have only anchored patterns without repeated groups', () => {
    const patterns: string[] = [];
    const visit = (node: unknown): void => {
      if (typeof node !== 'object' || node === null) return;
      for (const [keyword, value] of Object.entries(node)) {
        if ((keyword === 'pattern' || keyword === 'matches') && typeof value === 'string')
          patterns.push(value);
        visit(value);
      }
    };
    visit([sharedDefinitions, requestDefinitions, answerDefinitions]);
    assert.ok(patterns.length > 20);
    for (const pattern of patterns.filter((one) => one !== '\\S' && one !== '^0')) {
      assert.match(pattern, /^\^.*\$$/);
      assert.doesNotMatch(pattern, /\)[*+{]/);
    }
  });
});
