import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { rewriteLinks } from '../../../src/rewriting/rewrite-links.ts';

const toPublic = (address: string) =>
  address.startsWith('/v1/') ? `https://gateway.example${address}` : undefined;

const rewritten = (text: string) => rewriteLinks(Buffer.from(text), toPublic).toString();

/** Links at `@` are rewritten; text at `!` and all other text is not. */
function assertRewrittenAt(marked: string): void {
  const result = rewritten(marked.replaceAll('@', '/v1/a').replaceAll('!', '/v1/a'));
  assert.equal(
    result,
    marked.replaceAll('@', 'https://gateway.example/v1/a').replaceAll('!', '/v1/a'),
    marked,
  );
}

/** The same Buffer is returned, unchanged. */
function assertUnchanged(
  json: string | Buffer,
  rewrite: (address: string) => string | undefined = toPublic,
): void {
  const body = Buffer.from(json);
  const before = Buffer.from(body);
  assert.equal(rewriteLinks(body, rewrite), body);
  assert.deepEqual(body, before);
}

describe('rewriteLinks', () => {
  test('rewrites links at any depth, also in arrays', () => {
    assertRewrittenAt('{"_links":{"self":{"href":"@"},"status":{"href":"@"}}}');
    assertRewrittenAt('[{"a":[[{"b":{"_links":{"self":{"href":"@"}}}}]]},{"_links":{"x":{"href":"@"}}}]');
    assertRewrittenAt('{"_links":{"self":[{"href":"@"},[{"href":"@"}]]}}');
    assertRewrittenAt('{"_links":[{"self":{"href":"@"}}]}');
    assertRewrittenAt('{"_links":{"self":{"href":"@","_links":{"next":{"href":"@"}}}}}');
    assertRewrittenAt('{"tppMessages":[{"code":"X","_links":{"startAuthorisation":{"href":"@"}}}]}');
  });

  test('keeps every other byte: numbers, white space, order, escapes, duplicate members', () => {
    assertRewrittenAt(
      '{ "amount" : 123.50,\r\n\t"big":12345678901234567890, "e":1E+2,"z":"\\u00fc\\/ü💶\\ud83d\\udcb6",\n' +
        '"_links":{"b" :\t{ "x":-0.0, "href" :\n "@" , "y":"" }, "a":{"href":"@"},"a":{"href":"@"}},' +
        '"amount":1,"_links" : {"c":{"href":"@","href":"@"}} } \n',
    );
  });

  test('never changes scaRedirect and scaOAuth, nor links inside of them', () => {
    assertRewrittenAt('{"_links":{"scaRedirect":{"href":"!"},"self":{"href":"@"},"scaOAuth":{"href":"!"}}}');
    assertRewrittenAt(
      '{"_links":{"scaRedirect":[{"href":"!"}],"scaOAuth":{"a":{"_links":{"self":{"href":"!"}}}}}}',
    );
    assertRewrittenAt('{"_links":{"sca\\u0052edirect":{"href":"!"},"scaStatus":{"href":"@"}}}');
    assertRewrittenAt('{"scaRedirect":{"_links":{"self":{"href":"@"}}}}');
  });

  test('changes only links in _links, not members that look like links', () => {
    assertRewrittenAt('{"href":"!","links":{"self":{"href":"!"}},"_LINKS":{"self":{"href":"!"}}}');
    assertRewrittenAt('{"_links":{"href":"!","self":"!","a":{"HREF":"!","title":"!","b":{"href":"!"}}}}');
    assertRewrittenAt('{"_links":{"self":{"href":["!"],"x":["href","!"]}},"_links2":"_links"}');
    assertRewrittenAt(
      '{"challengeData":{"imageLink":"!"},"text":"{\\"_links\\":{\\"self\\":{\\"href\\":\\"!\\"}}}"}',
    );
    assertRewrittenAt('["_links",{"self":{"href":"!"}}]');
  });

  test('recognises names and URLs that are written with escapes', () => {
    const plain = '{"_links":{"self":{"href":"https://gateway.example/v1/a"}}}';

    assert.equal(rewritten('{"_links":{"self":{"href":"\\/v1\\/a"}}}'), plain);
    assert.equal(rewritten('{"_links":{"self":{"href":"\\u002fv1\\u002Fa"}}}'), plain);
    assert.equal(
      JSON.stringify(JSON.parse(rewritten('{"\\u005flinks":{"s\\u0065lf":{"\\u0068ref":"/v1/a"}}}'))),
      plain,
    );
    assertRewrittenAt('{"a\\\\":1,"b\\"":"\\\\","_links":{"\\"}":{"href":"@"},"\\\\":{"href":"@"}}}');
  });

  test('writes any new URL as valid JSON', () => {
    const odd = 'x"y\\z\n\u2028\ud800';
    const result = rewriteLinks(Buffer.from('{"_links":{"self":{"href":"/"}}}'), () => odd);

    assert.equal(JSON.parse(result.toString())._links.self.href, odd);
  });
});

describe('a body is not changed', () => {
  test('if no link changes', () => {
    assertUnchanged('{"transactionStatus":"ACSP"}');
    assertUnchanged('{"_links":{"self":{"href":"https://other.example/v1/"}}}');
    assertUnchanged('{"_links":{"self":{"href":"\\/same"}}}', (address) => address);
    assertUnchanged('{"_links":{"self":{"href":7},"b":{"href":null},"c":null,"d":{}}}');
    for (const text of ['null', '"href"', '7', '[]', '{}', ' ']) assertUnchanged(text);
  });

  test('if it is not JSON', () => {
    const good = '{"_links":{"self":{"href":"/v1/a"}}}';
    const bad = ['', '{', good.slice(0, -1), `${good}}`, `${good},`, `x${good}`, `\ufeff${good}`, `'${good}`];
    for (const text of [...bad, good.replace('"/v1', '"\t/v1'), good.replace('v1', '\\x')])
      assertUnchanged(text);
  });

  test('if it is not UTF-8', () => {
    const good = '{"a":"ü","_links":{"self":{"href":"/v1/a"}}}';

    assertUnchanged(Buffer.from(good, 'latin1'));
    assertUnchanged(Buffer.from(good, 'utf16le'));
    assertUnchanged(Buffer.concat([Buffer.from(good), Buffer.from([0xc0, 0xaf])]));
  });
});

describe('rewriteLinks, for any body', () => {
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

  test('has the same result as parsing, replacing and serializing', () => {
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

  test('returns the same bytes if no URL changes, for JSON and other bytes', () => {
    const anything = fc.oneof(text, fc.string({ unit: 'binary' }), fc.uint8Array().map(Buffer.from));
    fc.assert(
      fc.property(anything, (body) => {
        assertUnchanged(body, () => undefined);
        assertUnchanged(body, (found) => found);
      }),
    );
  });

  test('does not change a text that is cut off at any position', () => {
    const whole = '{"a":["x\\"",1],"_links":{"self":{"href":"/v1/a","t":"\\u0041"}}}';
    for (let length = 0; length < whole.length; length++) assertUnchanged(whole.slice(0, length));
  });

  test('handles a nesting of 100,000 levels and bodies of several megabytes', { timeout: 20_000 }, () => {
    const link = '{"_links":{"self":{"href":"@"}}}';
    const deep = 100_000;
    assertRewrittenAt(`${'['.repeat(deep)}${link}${']'.repeat(deep)}`);
    assertRewrittenAt(`${'{"_links":{"a":'.repeat(deep)}{"href":"@"}${'}}'.repeat(deep)}`);
    assertUnchanged(`"href"${'['.repeat(4_000_000)}`);
    assertRewrittenAt(`[${`${link},`.repeat(100_000)}0]`);
    assertRewrittenAt(
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
