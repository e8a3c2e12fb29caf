/**
 * Every URL in an answer either stays as the bank wrote it, or is accepted by the gateway and reaches the bank as the rules say.
 * `LINK_ANSWERS` sets the number of generated answers.
 */

import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { test } from 'node:test';
import fc from 'fast-check';
import { call, jsonOf, type Reply } from '../kit/call.ts';
import { publicUrl, startGateway } from '../kit/gateway.ts';
import { initiation } from '../kit/request.ts';
import { type StubResponse, startStubBank } from '../kit/stub-bank.ts';

const answers = Number(process.env.LINK_ANSWERS ?? 150);
const prefix = '/psd2/xs2a/v1.1';
const authorisationPrefix = '/psd2/xs2a/v1';
const product = 'sepa-credit-transfers';
const own = `${publicUrl}/berlingroup/v1`;

/** A link: what the bank writes, and what a TPP must find. */
interface Link {
  readonly relation: string;
  readonly written: string;
  readonly expected: 'kept' | 'absolute at the bank' | Followed;
}

/** A link that is rewritten. */
interface Followed {
  readonly method: string;
  /** What follows the gateway's prefix, fragment included. */
  readonly tail: string;
  /** The target that the bank receives when a TPP follows it. */
  readonly target: string;
}

const strictId = fc
  .string({ unit: fc.constantFrom(...'aZ09._~-=:@+,!$*'), minLength: 1, maxLength: 20 })
  .filter((id) => !/^(?:\.\.?|status)$/.test(id));
const printable = fc.constantFrom(...'aZ09/;?#& "<>|^`{}[]()\'\\=+ü€日😀');
const unusualId = fc
  .string({ unit: printable, minLength: 1, maxLength: 20 })
  .filter((id) => !/(?:^|[/\\])\.{1,2}(?:[/\\;]|$)/.test(id));
const anyId = fc.oneof(strictId, unusualId);

/** A spelling of an id: characters that a path segment may contain as they are, or all of them encoded. */
const spelled = (id: string, isEncoded: boolean) =>
  isEncoded
    ? encodeURIComponent(id)
    : encodeURIComponent(id).replaceAll(/%(?:3B|3D|3A|40|2B|2C|24|26)/g, decodeURIComponent);

const query = fc.constantFrom('', '', '?', '?correlationId=CN4KNJ', '?a=b&c=%2f;d', "?x='(!)*,:@/?$");
const fragment = fc.constantFrom('', '', '#', '#top', '#/a?b');
const service = fc.constantFrom('payments', 'bulk-payments', 'periodic-payments');

/** The path of an operation on the payment, and the method that a TPP uses. */
const operation = (payment: string, authorisation: string) =>
  fc
    .tuple(
      service,
      fc.constantFrom('', '/status', '/authorisations', `/authorisations/${authorisation}`),
      query,
      fragment,
    )
    .map(([name, rest, search, hash]) => ({
      method: name === 'bulk-payments' && rest === '' ? 'DELETE' : 'GET',
      prefix: rest.startsWith('/authorisations') ? authorisationPrefix : prefix,
      path: `/${name}/${product}/${payment}${rest}`,
      search,
      hash,
    }));

const link = (origin: string, payment: string, authorisation: string) =>
  fc
    .tuple(
      operation(payment, authorisation),
      fc.constantFrom(...forms),
      fc.constantFrom('self', 'status', 'scaStatus', 'x-y'),
    )
    .map(([{ method, prefix, path, search, hash }, form, relation]): Link => {
      const tail = path + search + hash;
      const followed = { method, tail, target: prefix + path + search };
      const kept = (written: string): Link => ({ relation, written, expected: 'kept' });
      const rewritten = (written: string): Link => ({ relation, written, expected: followed });
      const links: Readonly<Record<(typeof forms)[number], Link>> = {
        absolute: rewritten(origin + prefix + tail),
        'absolute in capitals': rewritten(origin.replace('http:', 'HTTP:') + prefix + tail),
        complete: rewritten(prefix + tail),
        'another version': rewritten(`/psd2/xs2a/v9${tail}`),
        'without the prefix': rewritten(tail),
        'without a slash': rewritten(tail.slice(1)),
        'absolute, another version': kept(`${origin}/psd2/xs2a/v9${tail}`),
        'absolute, no prefix': kept(origin + tail),
        foreign: kept(`https://evil.example${prefix}${tail}`),
        'network path': kept(origin.slice('http:'.length) + prefix + tail),
        user: kept(origin.replace('//', '//user:secret@') + prefix + tail),
        'host as user': kept(`${origin}@evil.example${prefix}${tail}`),
        dots: kept(`${origin}${prefix}/../v1.1${tail}`),
        'encoded dots': kept(`/psd2/%2e%2E${tail}`),
        backslash: kept(`${origin}${prefix}\\${tail}`),
        'control character': kept(`${origin}${prefix}${tail}\n`),
        space: kept(`${prefix} ${tail}`),
        'no operation': kept(`${origin}${prefix}/accounts/${payment}`),
        'more than an operation': kept(`${prefix}${path}/transactions/1${search}`),
        'long query': kept(`${prefix}${path}?${'a'.repeat(1_025)}`),
        'another payment': kept(`${origin}${prefix}/payments/${product}/other%2Fpayment`),
        'ten kilobytes': kept(`${prefix}/payments/${product}/${'a'.repeat(10_000)}`),
        scaRedirect: { relation: 'scaRedirect', written: `/sca${tail}`, expected: 'absolute at the bank' },
        scaOAuth: { relation: 'scaOAuth', written: origin + prefix + tail, expected: 'kept' },
      };
      return links[form];
    });

const forms = [
  'absolute',
  'absolute in capitals',
  'complete',
  'another version',
  'without the prefix',
  'without a slash',
  'absolute, another version',
  'absolute, no prefix',
  'foreign',
  'network path',
  'user',
  'host as user',
  'dots',
  'encoded dots',
  'backslash',
  'control character',
  'space',
  'no operation',
  'more than an operation',
  'long query',
  'another payment',
  'ten kilobytes',
  'scaRedirect',
  'scaOAuth',
] as const;

/** Where the bank writes a link. */
type Place = 'object' | 'text' | 'list' | 'Location' | 'Content-Location' | 'Location in JSON';
const place = fc.constantFrom<Place>(
  'object',
  'object',
  'text',
  'list',
  'Location',
  'Content-Location',
  'Location in JSON',
);

test(`${answers} generated answers: each URL is kept or rewritten by the rules, and each rewritten one reaches the same resource at the bank`, {
  timeout: 600_000,
}, async (t) => {
  let respond = (): StubResponse => ({});
  const bank = await startStubBank(t, ({ method }) =>
    method === 'POST'
      ? respond()
      : {
          status: method === 'DELETE' ? 204 : 200,
          headers: [['Content-Type', 'application/json']],
          body: method === 'DELETE' ? '' : '{}',
        },
  );
  const gateway = await startGateway(t, {
    environments: {
      sandbox: {
        baseUrl: `${bank.baseUrl}/psd2`,
        segment: 'xs2a',
        pathVersion: {
          default: 'v1.1',
          startAuthorisation: 'v1',
          listAuthorisations: 'v1',
          getAuthorisation: 'v1',
        },
      },
    },
    statusCache: { enabled: false },
  });
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const seen = new Map<string, number>();
  let number = 0;

  const answer = fc.tuple(anyId, anyId, fc.boolean()).chain(([id, authorisationId, isEncoded]) => {
    const paymentId = `${number++}${id}`.slice(0, 256); // an id of an earlier answer may have another spelling
    const links = fc.array(
      fc.tuple(link(bank.baseUrl, spelled(paymentId, isEncoded), spelled(authorisationId, isEncoded)), place),
      { minLength: 1, maxLength: 6 },
    );
    return fc.record({ paymentId: fc.constant(paymentId), links });
  });

  await fc.assert(
    fc.asyncProperty(answer, async ({ paymentId, links }) => {
      const placed = links.map(([one, where]) => ({ ...one, where: placeOf(one, where) }));
      respond = () => responseWith(paymentId, placed);
      const created = await call(gateway.url, initiation, agent);
      assert.equal(created.status, 201);
      const urls = urlsIn(created, placed);
      for (const [at, { written, expected, where }] of placed.entries()) {
        const url = urls[at];
        if (expected === 'kept') assert.equal(url, written);
        else if (expected === 'absolute at the bank') assert.equal(url, bank.baseUrl + written);
        else {
          assert.equal(url, own + expected.tail, written);
          const path = new URL(own).pathname + expected.tail.split('#', 1)[0];
          const reply = await call(gateway.url, { method: expected.method, path }, agent);
          assert.ok(reply.status < 300, `${reply.status} ${reply.text} ${path}`);
          const received = bank.requests.at(-1);
          assert.deepEqual([received?.method, received?.path], [expected.method, expected.target]);
        }
        const kind = `${typeof expected === 'string' ? expected : 'rewritten'}, ${where}`;
        seen.set(kind, (seen.get(kind) ?? 0) + 1);
      }
    }),
    { numRuns: answers, endOnFailure: true },
  );
  t.diagnostic([...seen].map(([kind, count]) => `${kind}: ${count}`).join('; '));
  for (const where of ['object', 'text', 'list', 'Location', 'Content-Location', 'Location in JSON'])
    for (const what of ['rewritten', 'kept'])
      assert.ok((seen.get(`${what}, ${where}`) ?? 0) > 0, `${what}, ${where}`);
  assert.ok((seen.get('absolute at the bank, object') ?? 0) > 0, 'links for the payer');
});

/** Header fields cannot contain control characters or many kilobytes, and have no links for the payer. */
function placeOf({ relation, written }: Link, wanted: Place): Place {
  const isForBody = relation.startsWith('sca') && relation !== 'scaStatus';
  return (isForBody || written.endsWith('\n') || written.length > 5_000) && wanted.includes('Location')
    ? 'object'
    : wanted;
}

function responseWith(paymentId: string, links: readonly (Link & { readonly where: Place })[]): StubResponse {
  const inBody = links.map(({ relation, written, where }) => {
    if (where === 'object') return { _links: { [relation]: { title: written, href: written } } };
    if (where === 'text') return { _links: { [relation]: written } };
    return where === 'list' ? { _links: { [relation]: [{ href: written }] } } : {};
  });
  const fields = links.flatMap(({ written, where }): [string, string][] => {
    if (where === 'Location in JSON') return [['Location', JSON.stringify({ href: written })]];
    return where.includes('Location') ? [[where, written]] : [];
  });
  return {
    status: 201,
    headers: [['Content-Type', 'application/json'], ...fields],
    body: JSON.stringify({ paymentId, links: inBody }),
  };
}

/** The URL of each link in the response to the TPP. */
function urlsIn(reply: Reply, links: readonly (Link & { readonly where: Place })[]): readonly unknown[] {
  const { links: inBody } = jsonOf(reply);
  const fields = reply.fields
    .filter(([name]) => /^(?:content-)?location$/i.test(name))
    .map(([, value]) => value);
  return links.map(({ relation, where }, at) => {
    if (where.includes('Location')) {
      const value = fields.shift() ?? '';
      return where === 'Location in JSON' ? JSON.parse(value).href : value;
    }
    const found = (inBody as Record<number, { _links: Record<string, unknown> }>)[at]?._links[relation];
    const first = Array.isArray(found) ? found[0] : found;
    return typeof first === 'string' ? first : (first as { href: string }).href;
  });
}
