import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readMultipart } from '../../../src/contract/read-multipart.ts';

const type = 'multipart/form-data; boundary=AaB';
const disposition = 'Content-Disposition: form-data; name="xml_sct"';
const part = (head: string, body = 'content') => `--AaB\r\n${head}\r\n\r\n${body}\r\n`;
const read = (parts: string, contentType = type, end = '--AaB--\r\n') =>
  readMultipart(contentType, Buffer.from(parts + end))?.map(({ name, body }) => [name, body.toString()]);

describe('a body of multipart/form-data', () => {
  const wellFormed: readonly (readonly [string, string, (readonly [string, string])[]])[] = [
    ['one part', part(disposition), [['xml_sct', 'content']]],
    ['an empty part', part(disposition, ''), [['xml_sct', '']]],
    ['text before the first part', `before\r\n${part(disposition)}`, [['xml_sct', 'content']]],
    ['a folded field', part(disposition.replace('; ', ';\r\n  ')), [['xml_sct', 'content']]],
    [
      'another name inside a quoted parameter',
      part('Content-Disposition: form-data; filename="a; name=b"; name="xml_sct"'),
      [['xml_sct', 'content']],
    ],
    [
      'a line that only begins like a delimiter',
      part(disposition, 'a\r\n--AaBx\r\nb\r\n--AaB--x\r\nc'),
      [['xml_sct', 'a\r\n--AaBx\r\nb\r\n--AaB--x\r\nc']],
    ],
  ];
  for (const [name, parts, expected] of wellFormed)
    test(`is read with ${name}`, () => assert.deepEqual(read(parts), expected));

  const malformed: readonly (readonly [string, string])[] = [
    ['a name twice', `${disposition}; name="other"`],
    ['a name in the extended notation', `${disposition}; name*=UTF-8''other`],
    ['a field twice', `${disposition}\r\nContent-Disposition: form-data; name="other"`],
    ['a quote that does not end', 'Content-Disposition: form-data; name="xml_sct'],
    ['a space before the colon', 'Content-Disposition : form-data; name="xml_sct"'],
  ];
  for (const [name, head] of malformed)
    test(`is malformed with ${name}`, () => assert.equal(read(part(head)), undefined));

  test('uses the boundary that every other reader uses', () => {
    const quoted = 'multipart/form-data; x="; boundary=other"; boundary="AaB"';
    assert.equal(read(part(disposition), quoted)?.length, 1);
    assert.equal(read(part(disposition), `${type}; boundary=other`), undefined);
    assert.equal(read(part(disposition), 'multipart/form-data'), undefined);
  });

  test('must end with its delimiter', () => {
    assert.equal(read(part(disposition), type, ''), undefined);
    assert.equal(read(part(disposition), type, '--AaB')?.length, undefined);
    assert.equal(read(part(disposition), type, '--AaB--')?.length, 1);
  });
});
