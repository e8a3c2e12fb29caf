import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { rewriteLinks } from '../../../src/rewriting/rewrite-links.ts';

const toPublic = (address: string) =>
  address.startsWith('/v1/') ? `https://gateway.example${address}` : undefined;

/** What becomes of a JSON text. */
const rewritten = (text: string) => rewriteLinks(Buffer.from(text), toPublic).toString();

/** Every link of the text is rewritten where `@` stands, and nothing else is. */
function rewritesAt(marked: string): void {
  const result = rewritten(marked.replaceAll('@', '/v1/a').replaceAll('!', '/v1/a'));
  assert.equal(
    result,
    marked.replaceAll('@', 'https://gateway.example/v1/a').replaceAll('!', '/v1/a'),
    marked,
  );
}

/** Nothing changes, and not even a copy is made. */
function leaves(json: string | Buffer, rewrite: (address: string) => string | undefined = toPublic): void {
  const body = Buffer.from(json);
  const before = Buffer.from(body);
  assert.equal(rewriteLinks(body, rewrite), body);
  assert.deepEqual(body, before);
}

describe('the links of a body', () => {
  test('are rewritten at any depth, in arrays too', () => {
    rewritesAt('{"_links":{"self":{"href":"@"},"status":{"href":"@"}}}');
    rewritesAt('[{"a":[[{"b":{"_links":{"self":{"href":"@"}}}}]]},{"_links":{"x":{"href":"@"}}}]');
    rewritesAt('{"_links":{"self":[{"href":"@"},[{"href":"@"}]]}}');
    rewritesAt('{"_links":[{"self":{"href":"@"}}]}');
    rewritesAt('{"_links":{"self":{"href":"@","_links":{"next":{"href":"@"}}}}}');
    rewritesAt('{"tppMessages":[{"code":"X","_links":{"startAuthorisation":{"href":"@"}}}]}');
  });

  test('leave every other byte as it is: numbers, white space, order, escapes, duplicates', () => {
    rewritesAt(
      '{ "amount" : 123.50,\r\n\t"big":12345678901234567890, "e":1E+2,"z":"\\u00fc\\/ü💶\\ud83d\\udcb6",\n' +
        '"_links":{"b" :\t{ "x":-0.0, "href" :\n "@" , "y":"" }, "a":{"href":"@"},"a":{"href":"@"}},' +
        '"amount":1,"_links" : {"c":{"href":"@","href":"@"}} } \n',
    );
  });

  test('named scaRedirect or scaOAuth are never touched, nor is anything below them', () => {
    rewritesAt('{"_links":{"scaRedirect":{"href":"!"},"self":{"href":"@"},"scaOAuth":{"href":"!"}}}');
    rewritesAt('{"_links":{"scaRedirect":[{"href":"!"}],"scaOAuth":{"a":{"_links":{"self":{"href":"!"}}}}}}');
    rewritesAt('{"_links":{"sca\\u0052edirect":{"href":"!"},"scaStatus":{"href":"@"}}}');
    rewritesAt('{"scaRedirect":{"_links":{"self":{"href":"@"}}}}');
  });

  test('are what stands in _links, not whatever looks like it', () => {
    rewritesAt('{"href":"!","links":{"self":{"href":"!"}},"_LINKS":{"self":{"href":"!"}}}');
    rewritesAt('{"_links":{"href":"!","self":"!","a":{"HREF":"!","title":"!","b":{"href":"!"}}}}');
    rewritesAt('{"_links":{"self":{"href":["!"],"x":["href","!"]}},"_links2":"_links"}');
    rewritesAt(
      '{"challengeData":{"imageLink":"!"},"text":"{\\"_links\\":{\\"self\\":{\\"href\\":\\"!\\"}}}"}',
    );
    rewritesAt('["_links",{"self":{"href":"!"}}]');
  });

  test('may be written with escapes', () => {
    const plain = '{"_links":{"self":{"href":"https://gateway.example/v1/a"}}}';

    assert.equal(rewritten('{"_links":{"self":{"href":"\\/v1\\/a"}}}'), plain);
    assert.equal(rewritten('{"_links":{"self":{"href":"\\u002fv1\\u002Fa"}}}'), plain);
    assert.equal(
      JSON.stringify(JSON.parse(rewritten('{"\\u005flinks":{"s\\u0065lf":{"\\u0068ref":"/v1/a"}}}'))),
      plain,
    );
    rewritesAt('{"a\\\\":1,"b\\"":"\\\\","_links":{"\\"}":{"href":"@"},"\\\\":{"href":"@"}}}');
  });

  test('come out as proper JSON, whatever the new address holds', () => {
    const odd = 'x"y\\z\n\u2028\ud800';
    const result = rewriteLinks(Buffer.from('{"_links":{"self":{"href":"/"}}}'), () => odd);

    assert.equal(JSON.parse(result.toString())._links.self.href, odd);
  });
});

describe('a body passes untouched', () => {
  test('if no link changes', () => {
    leaves('{"transactionStatus":"ACSP"}');
    leaves('{"_links":{"self":{"href":"https://other.example/v1/"}}}');
    leaves('{"_links":{"self":{"href":"\\/same"}}}', (address) => address);
    leaves('{"_links":{"self":{"href":7},"b":{"href":null},"c":null,"d":{}}}');
    for (const text of ['null', '"href"', '7', '[]', '{}', ' ']) leaves(text);
  });

  test('if it is not JSON', () => {
    const good = '{"_links":{"self":{"href":"/v1/a"}}}';
    const bad = ['', '{', good.slice(0, -1), `${good}}`, `${good},`, `x${good}`, `\ufeff${good}`, `'${good}`];
    for (const text of [...bad, good.replace('"/v1', '"\t/v1'), good.replace('v1', '\\x')]) leaves(text);
  });

  test('if it is not UTF-8', () => {
    const good = '{"a":"ü","_links":{"self":{"href":"/v1/a"}}}';

    leaves(Buffer.from(good, 'latin1'));
    leaves(Buffer.from(good, 'utf16le'));
    leaves(Buffer.concat([Buffer.from(good), Buffer.from([0xc0, 0xaf])]));
  });
});

describe('whatever the body', () => {
  const words = fc.constantFrom(
    '_links',
    '_links',
    'href',
    'href',
    'self',
    'scaRedirect',
    'scaOAuth',
    '__proto__',
  );
  const key = fc.oneof(words, words, fc.string({ unit: 'binary', maxLength: 3 }));
  const address = fc.constantFrom('/v1/a', '/v1/"b\\', 'https://other.example/', '');
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { depthSize: 'medium', withCrossShrink: true },
      fc.oneof(address, fc.jsonValue({ maxDepth: 0 })),
      fc.record({ href: address }),
      fc.array(tie('json'), { maxLength: 3 }),
      fc.array(fc.tuple(key, tie('json')), { maxLength: 4 }).map(Object.fromEntries),
    ),
  }));
  const linked = fc.array(fc.tuple(key, json), { minLength: 1, maxLength: 4 }).map((links) => ({
    _links: Object.fromEntries(links),
    more: { _links: { a: Object.fromEntries(links) } },
  }));
  const text = fc
    .tuple(fc.oneof(json, linked), fc.constantFrom('', ' ', '\t\n'), fc.boolean())
    .map(([value, indent, escaped]) => {
      const plain = JSON.stringify(value, null, indent);
      return escaped ? plain.replaceAll('/', '\\/').replaceAll('h', '\\u0068') : plain;
    });

  test('the result means what a parser and a writer would have made of it', () => {
    let changed = 0;
    fc.assert(
      fc.property(text, (body) => {
        const result = rewritten(body);
        if (result !== body) changed++;
        assert.deepEqual(JSON.parse(result), naive(JSON.parse(body)));
      }),
      { numRuns: 1000 },
    );
    assert.ok(changed > 100, `only ${changed} bodies had a link to rewrite`);
  });

  test('the very same bytes come back if no address changes, JSON or not', () => {
    const anything = fc.oneof(text, fc.string({ unit: 'binary' }), fc.uint8Array().map(Buffer.from));
    fc.assert(
      fc.property(anything, (body) => {
        leaves(body, () => undefined);
        leaves(body, (found) => found);
      }),
    );
  });

  test('a text cut anywhere passes untouched', () => {
    const whole = '{"a":["x\\"",1],"_links":{"self":{"href":"/v1/a","t":"\\u0041"}}}';
    for (let length = 0; length < whole.length; length++) leaves(whole.slice(0, length));
  });

  test('a depth of 100,000 and a size of some megabytes do no harm', { timeout: 20_000 }, () => {
    const link = '{"_links":{"self":{"href":"@"}}}';
    const deep = 100_000;
    rewritesAt(`${'['.repeat(deep)}${link}${']'.repeat(deep)}`);
    rewritesAt(`${'{"_links":{"a":'.repeat(deep)}{"href":"@"}${'}}'.repeat(deep)}`);
    leaves(`"href"${'['.repeat(4_000_000)}`);
    rewritesAt(`[${`${link},`.repeat(100_000)}0]`);
    rewritesAt(
      `{"_links":{"a":{"href":"@"}},"text":"${'\\\\'.repeat(2_000_000)}","more":"${'x'.repeat(2_000_000)}"}`,
    );
  });
});

/** The obvious implementation, which cannot keep the bytes. */
function naive(value: unknown, within: 'other' | 'links' | 'link' | 'payer' = 'other'): unknown {
  if (Array.isArray(value)) return value.map((element) => naive(element, within));
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([key, member]) => {
    if (within === 'link' && key === 'href' && typeof member === 'string')
      return [key, toPublic(member) ?? member];
    if (within === 'payer') return [key, member];
    if (within === 'links') return [key, naive(member, key.startsWith('sca') ? 'payer' : 'link')];
    return [key, naive(member, key === '_links' ? 'links' : 'other')];
  });
  return Object.fromEntries(members);
}
