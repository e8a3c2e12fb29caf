import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { LinkMapper } from '../../../src/rewriting/link-mapper.ts';
import { rewriteLinkObject, rewriteLinks } from '../../../src/rewriting/rewrite-links.ts';

const toPublic = (address: string) =>
  address.startsWith('/v1/') ? `https://gateway.example${address}` : undefined;

const mapper: LinkMapper = { link: toPublic, payerLink: () => undefined };

const rewritten = (text: string) => rewriteLinks(text, mapper);

/** Links at `@` are rewritten; text at `!` and all other text is not. */
function assertRewrittenAt(marked: string): void {
  const result = rewritten(marked.replaceAll('@', '/v1/a').replaceAll('!', '/v1/a'));
  assert.equal(
    result,
    marked.replaceAll('@', 'https://gateway.example/v1/a').replaceAll('!', '/v1/a'),
    marked,
  );
}

const assertUnchanged = (json: string, link: LinkMapper['link'] = toPublic) =>
  assert.equal(rewriteLinks(json, { ...mapper, link }), json);

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

  test('rewrites links that are texts', () => {
    assertRewrittenAt('{"_links":{"self":"@","status":["@",["@"]],"scaRedirect":"!","scaOAuth":["!"]}}');
    assertRewrittenAt('{"_links":[{"self":"@"}]}');
  });

  test('gives the mapper the relation of each link, and those for the payer apart', () => {
    const seen: string[] = [];
    rewriteLinks(
      '{"_links":{"self":"a","status":{"x":{"_links":{"inner":"b"}},"href":"c"},"list":[{"href":"d"},"e"],"scaRedirect":{"href":"f"},"scaOAuth":"g"},"z":{"_links":{"\\u0073elf":"h"}}}',
      {
        link: (url, relation) => void seen.push(`${relation} ${url}`),
        payerLink: (url) => void seen.push(`payer ${url}`),
      },
    );
    assert.deepEqual(seen, [
      'self a',
      'inner b',
      'status c',
      'list d',
      'list e',
      'payer f',
      'payer g',
      'self h',
    ]);
  });

  test('rewrites the href of an object that is a link itself', () => {
    const object = '{"title":"/v1/a","href":"/v1/a","x":{"href":"/v1/a"}}';
    assert.equal(
      rewriteLinkObject(object, mapper, 'location'),
      '{"title":"/v1/a","href":"https://gateway.example/v1/a","x":{"href":"/v1/a"}}',
    );
  });

  test('changes only links in _links, not members that look like links', () => {
    assertRewrittenAt('{"href":"!","links":{"self":{"href":"!"}},"_LINKS":{"self":{"href":"!"}}}');
    assertRewrittenAt('{"_links":{"href":"@","self":"@","a":{"HREF":"!","title":"!","b":{"href":"!"}}}}');
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
    const result = rewriteLinks('{"_links":{"self":{"href":"/"}}}', { ...mapper, link: () => odd });

    assert.equal(JSON.parse(result)._links.self.href, odd);
  });
});

describe('a body is not changed', () => {
  test('if no link changes', () => {
    assertUnchanged('{"transactionStatus":"ACSP"}');
    assertUnchanged('{"_links":{"self":{"href":"https://other.example/v1/"}}}');
    assertUnchanged('{"_links":{"self":{"href":"\\/same"}}}', (address) => address);
    assertUnchanged('{"_links":{"self":{"href":7},"b":{"href":null},"c":null,"d":{}}}');
    for (const text of ['null', '"href"', '7', '[]', '{}', ' ', '"_links"']) assertUnchanged(text);
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

  test('returns the same text if no URL changes', () => {
    fc.assert(
      fc.property(text, (body) => {
        assertUnchanged(body, () => undefined);
        assertUnchanged(body, (found) => found);
      }),
    );
  });

  test('handles a nesting of 100,000 levels and bodies of several megabytes', { timeout: 20_000 }, () => {
    const link = '{"_links":{"self":{"href":"@"}}}';
    const deep = 100_000;
    assertRewrittenAt(`${'['.repeat(deep)}${link}${']'.repeat(deep)}`);
    assertRewrittenAt(`${'{"_links":{"a":'.repeat(deep)}{"href":"@"}${'}}'.repeat(deep)}`);
    assertRewrittenAt(`[${`${link},`.repeat(100_000)}0]`);
    assertRewrittenAt(
      `{"_links":{"a":{"href":"@"}},"text":"${'\\\\'.repeat(2_000_000)}","more":"${'x'.repeat(2_000_000)}"}`,
    );
  });
});

/** The obvious implementation, which cannot keep the bytes. */
function naive(value: unknown, within: 'other' | 'links' | 'link' | 'payer' = 'other'): unknown {
  if (Array.isArray(value)) return value.map((element) => naive(element, within));
  if (within === 'link' && typeof value === 'string') return toPublic(value) ?? value;
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([key, member]) => {
    if (within === 'link' && typeof member === 'string')
      return [key, key === 'href' ? (toPublic(member) ?? member) : member];
    if (within === 'payer') return [key, member];
    if (within === 'links') return [key, naive(member, isPayers(key) ? 'payer' : 'link')];
    return [key, naive(member, key === '_links' ? 'links' : 'other')];
  });
  return Object.fromEntries(members);
}

const isPayers = (name: string) => name === 'scaRedirect' || name === 'scaOAuth';
