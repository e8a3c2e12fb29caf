import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  type DerValue,
  parseObjectId,
  parseSequence,
  parseText,
  parseValues,
  tags,
} from '../../../src/certificates/der.ts';
import { parseName } from '../../../src/certificates/distinguished-name.ts';
import { parseQcStatements } from '../../../src/certificates/qc-statements.ts';
import { seededRuns } from '../../kit/seeded-runs.ts';

const hex = (text: string) => Buffer.from(text, 'hex');
const objectId = (text: string): DerValue => ({ tag: tags.objectId, content: hex(text) });

describe('DER parser', () => {
  test('parses consecutive values', () => {
    assert.deepEqual(parseValues(hex('0501aa0600')), [
      { tag: 5, content: hex('aa') },
      { tag: 6, content: hex('') },
    ]);
  });

  test('parses lengths of one octet and of several', () => {
    for (const [head, length] of [
      ['047f', 127],
      ['048180', 128],
      ['04820100', 256],
      ['0483010000', 65_536],
      ['04820001', 1],
    ] as const) {
      const [value] = parseValues(Buffer.concat([hex(head), Buffer.alloc(length)]));
      assert.equal(value?.content.length, length, head);
    }
  });

  for (const [what, bytes] of Object.entries({
    'a value without a length': '30',
    'a truncated value': '300500',
    'a truncated length': '3082',
    'the indefinite length of BER': '30800000',
    'a length of five octets': '30850000000000',
    'a tag of several octets': '1f8101',
  }))
    test(`refuses ${what}`, () => void assert.throws(() => parseValues(hex(bytes)), RangeError));

  test('parses object identifiers, including a first arc of 2 and large arcs', () => {
    assert.equal(parseObjectId(objectId('550461')), '2.5.4.97');
    assert.equal(parseObjectId(objectId('040081982702')), '0.4.0.19495.2');
    assert.equal(parseObjectId(objectId('2b06010505070103')), '1.3.6.1.5.5.7.1.3');
    assert.equal(parseObjectId(objectId('883703')), '2.999.3');
  });

  test('refuses object identifiers that are empty, truncated, or exceed a safe integer', () => {
    for (const text of ['', '5504ff', `${'ff'.repeat(12)}7f`])
      assert.throws(() => parseObjectId(objectId(text)), RangeError);
    assert.throws(() => parseObjectId({ tag: 4, content: hex('5504') }), RangeError);
  });

  test('parses the string types that certificates use', () => {
    assert.equal(parseText({ tag: 12, content: Buffer.from('Zürich') }), 'Zürich');
    assert.equal(parseText({ tag: 19, content: Buffer.from('DE') }), 'DE');
    assert.equal(parseText({ tag: 20, content: Buffer.from('Zürich', 'latin1') }), 'Zürich');
    assert.equal(parseText({ tag: 30, content: hex('005a00fc') }), 'Zü');
    assert.throws(() => parseText({ tag: 2, content: hex('01') }), RangeError);
  });

  test('parses or refuses with a RangeError any bytes, and so do the parsers of names and QC statements', (t) => {
    const parsers = [
      (bytes: Buffer) => parseValues(bytes),
      (bytes: Buffer) => parseValues(bytes).map((value) => parseSequence(value)),
      (bytes: Buffer) => parseObjectId({ tag: tags.objectId, content: bytes }),
      (bytes: Buffer) => parseName(parseValues(bytes)[0]),
      (bytes: Buffer) => parseQcStatements(bytes),
    ];
    fc.assert(
      fc.property(anyBytes, (bytes) => {
        for (const parse of parsers) assertParsedOrRefused(() => parse(bytes));
      }),
      seededRuns(t, 3_000),
    );
  });

  test('parses every value that was encoded', (t) => {
    const encoded = fc.array(
      fc.tuple(fc.constantFrom(2, 4, 12, 0x30, 0xa3), fc.uint8Array({ maxLength: 300 })),
    );
    fc.assert(
      fc.property(encoded, (values) => {
        const bytes = Buffer.concat(values.map(([tag, content]) => der(tag, content)));
        assert.deepEqual(
          parseValues(bytes),
          values.map(([tag, content]) => ({ tag, content: Buffer.from(content) })),
        );
      }),
      seededRuns(t, 500),
    );
  });
});

/** Arbitrary bytes, and bytes that are DER down to a random depth. */
const { anyBytes } = fc.letrec<{ anyBytes: Buffer; inner: Buffer }>((tie) => ({
  anyBytes: fc.oneof(
    { maxDepth: 5 },
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
    fc.array(tie('inner'), { maxLength: 4 }).map((parts) => Buffer.concat(parts)),
  ),
  inner: fc
    .tuple(fc.constantFrom(0x30, 0x31, 0x06, 0x0c, 0x04, 0x1f, 0xa3), tie('anyBytes'))
    .map(([tag, content]) => der(tag, content)),
}));

function der(tag: number, content: Uint8Array): Buffer {
  const { length } = content;
  const head =
    length < 0x80
      ? [tag, length]
      : length < 0x100
        ? [tag, 0x81, length]
        : [tag, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(head), content]);
}

function assertParsedOrRefused(parse: () => unknown): void {
  try {
    parse();
  } catch (thrown) {
    assert.ok(thrown instanceof RangeError, String(thrown));
  }
}
