import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DeviationList } from '../../../src/contract/deviation.ts';
import { limits, readJson } from '../../../src/contract/read-json.ts';

/** White space makes a body so large that it is scanned before it is parsed. */
const large = ' '.repeat(65 * 1024);

const forms = [
  { name: 'short', of: (text: string) => text },
  { name: 'large', of: (text: string) => text + large },
  { name: 'with an escape sequence', of: (text: string) => text.replace(/^\{/, '{"\\u0078":"\\"",') },
];

const readText = (text: string) => {
  const list = new DeviationList();
  const read = readJson(Buffer.from(text), 'body', list);
  return { repeatedKeys: read?.repeatedKeys, rules: list.sorted().map(({ rule }) => rule) };
};

describe('the reader of JSON bodies', () => {
  for (const { name, of } of forms) {
    const repeatedIn = (text: string) => readText(of(text)).repeatedKeys?.map((path) => path.join('/'));

    test(`finds repeated keys in a body: ${name}`, () => {
      const bodies: readonly (readonly [body: string, paths: readonly string[]])[] = [
        ['{"a":1,"a":1}', ['']],
        ['{"a" :1,"a" :2}', ['']],
        ['{"a":1,"a":1,"a":1}', ['', '']],
        ['{"b":{"a":"1","a":"2"}}', ['b']],
        ['{"c":[{"a":1},{"a":1,"a":2}]}', ['c/0']],
        ['{"b":{"a":1},"b":[]}', ['']],
        ['{"b":[],"b":{"a":1,"c":"d"}}', ['']],
        ['{"":1,"":1}', ['']],
        ['{"__proto__":1,"__proto__":{"a":"b"}}', ['']],
        ['{"ä":1,"ä":"ß"}', ['']],
        ['{"a":"b:c","a":"d"}', ['']],
        ['{"a":1,"a":2,"b":"::"}', ['']],
        ['{"a":1,"a":2,"b":"\\u003a"}', ['']],
        ['{"a":{"b:c":1},"a":":"}', ['']],
      ];
      for (const [body, paths] of bodies) assert.deepEqual(repeatedIn(body), paths, body);
    });

    test(`finds none in a body: ${name}`, () => {
      const bodies = [
        '{"a":{},"b":[]}',
        '{"a":"a","b":{"a":"a"},"c":["a","a"]}',
        '{"a":":","b":"{,}","c":"[1]","d":null,"e":true,"f":-1.5e3}',
        '{"__proto__":{"a":1},"constructor":"a","toString":["b"]}',
        '{"a:":{":b":["c:d",1,"e"]},"f":"\\u003a::"}',
        '{ "ä" : "🙂" , "ü" : { } }',
      ];
      for (const body of bodies) assert.deepEqual(repeatedIn(body), [], body);
    });

    test(`rejects a body that is too deep: ${name}`, () => {
      const nested = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
      assert.deepEqual(readText(of(nested(limits.depth))).rules, []);
      assert.deepEqual(readText(of(nested(limits.depth + 1))).rules, ['too-complex']);
    });
  }

  test('rejects a short body with 30,000 levels', () => {
    assert.deepEqual(readText('['.repeat(30_000) + ']'.repeat(30_000)).rules, ['too-complex']);
    assert.deepEqual(readText('['.repeat(60_000)).rules, ['json']);
  });
});
