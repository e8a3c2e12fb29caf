/**
 * Random messages, most of them almost valid: no message makes the contract fail, and no deviation shows a value or a key of it.
 * `FUZZ_RUNS` and `FUZZ_SEED` set runs and seed.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Deviation } from '../../../src/contract/deviation.ts';
import { inspectResponse, judgeResponse } from '../../../src/contract/judge-response.ts';
import {
  answer,
  bothContracts,
  bulk,
  deviationsOf,
  multipart,
  pain001,
  partsOf,
  periodic,
  request,
  single,
  standingOrder,
  transferXml,
} from '../../kit/judged.ts';
import { seededRandom } from '../../kit/random.ts';
import { seededRuns } from '../../kit/seeded-runs.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 1_500);
/** One report per part of a long run. */
const runsPerReport = 100_000;

type Random = () => number;
type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

const canary = 'canary';
/** Valid values of a payment that no deviation may show. */
const secrets = /canary|DE40|DE02|100100|Merchant|123\.50/i;

const keys = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '',
  '0',
  '12',
  'length',
  'iban',
  'payments',
];
const hostileKeys = [
  ...keys,
  `${canary}-key`,
  'a/b',
  '~1',
  'DE40100100103307118608',
  '\u0000',
  '\ud800',
  'x'.repeat(300),
];

const pick = <Item>(random: Random, items: readonly [Item, ...Item[]] | readonly Item[]): Item =>
  items[Math.floor(random() * items.length)] as Item; // the list is not empty

function hostileValue(random: Random): Json {
  const values: readonly (() => Json)[] = [
    () => null,
    () => true,
    () => -0,
    () => 1e308 * 10,
    () => Number.MAX_SAFE_INTEGER + 2,
    () => '',
    () => `${canary}-value`,
    () => `${canary}\u0000\u2028\ud800`,
    () => 'x'.repeat(Math.floor(random() * 5_000)),
    () => '9'.repeat(400),
    () => [],
    () => ({}),
    () => [{ [pick(random, hostileKeys)]: canary }],
    () => nested(Math.floor(random() * 40)),
    () => Array.from({ length: Math.floor(random() * 60) }, () => canary),
    () =>
      Object.fromEntries(
        Array.from({ length: Math.floor(random() * 300) }, (_, at) => [`${canary}${at}`, 1]),
      ),
    () => '2027-02-30',
    () => 'DE40100100103307118608',
  ];
  return pick(random, values)();
}

const nested = (depth: number): Json =>
  depth === 0 ? canary : depth % 2 ? [nested(depth - 1)] : { iban: nested(depth - 1) };

/** Replaces, adds or removes something somewhere in the value. */
function mutated(value: Json, random: Random): Json {
  if (typeof value !== 'object' || value === null || random() < 0.15) return hostileValue(random);
  if (Array.isArray(value)) {
    if (value.length === 0 || random() < 0.2) return [...value, hostileValue(random)];
    const at = Math.floor(random() * value.length);
    return value.with(at, mutated(value[at], random));
  }
  const entries: (readonly [string, Json])[] = Object.entries(value);
  const at = Math.floor(random() * entries.length);
  const choice = random();
  if (choice < 0.15) return Object.fromEntries(entries.filter((_, index) => index !== at));
  const added = choice < 0.4 ? [[pick(random, hostileKeys), hostileValue(random)] as const] : [];
  return Object.fromEntries([
    ...entries.map(([key, member], index) => [
      key,
      index === at && added.length === 0 ? mutated(member, random) : member,
    ]),
    ...added,
  ]);
}

/** Changes the bytes of a text: cuts, repeats, inserts. */
function damaged(text: string, random: Random): Buffer {
  const bytes = Buffer.from(text);
  const at = Math.floor(random() * bytes.length);
  const rest = bytes.subarray(at);
  const hostile = [
    ...[
      '\uFEFF',
      '"',
      '\\',
      '\\ud800',
      ',',
      ':',
      '{',
      '}',
      '[',
      ']',
      '<',
      '>',
      '&canary;',
      '<!DOCTYPE canary>',
      '\r\n',
      '--AaB03x',
    ],
    ...[
      '9'.repeat(2_000),
      '['.repeat(200),
      '<a>'.repeat(100),
      '"canary":1,',
      `"${canary}":"${canary}"`,
      '\\u0000',
      '1e999',
    ],
  ];
  switch (Math.floor(random() * 5)) {
    case 0:
      return bytes.subarray(0, at);
    case 1:
      return Buffer.concat([bytes.subarray(0, at), Buffer.from(pick(random, hostile)), rest]);
    case 2:
      return Buffer.concat([bytes.subarray(0, at), Buffer.from([128 + Math.floor(random() * 128)]), rest]);
    case 3:
      return Buffer.concat([bytes, rest]);
    default:
      return Buffer.concat([
        bytes.subarray(0, at),
        bytes.subarray(Math.min(bytes.length, at + 1 + Math.floor(random() * 9))),
      ]);
  }
}

const jsonOf = (value: unknown): Json => JSON.parse(JSON.stringify(value));
const bodies = {
  single: jsonOf(
    single({
      creditorAddress: { country: 'DE' },
      remittanceInformationStructuredArray: [{ reference: '1' }],
    }),
  ),
  bulk: jsonOf(bulk()),
  periodic: jsonOf(periodic({ frequency: 'MonthlyVariable', monthsOfExecution: ['1', '4'] })),
  authorisation: jsonOf({ psuData: { password: canary } }),
  order: jsonOf(standingOrder()),
  answer: jsonOf({
    transactionStatus: 'RCVD',
    paymentId: canary,
    _links: { self: { href: `/v1/${canary}` }, [canary]: { href: canary } },
    tppMessages: [{ category: 'WARNING', code: canary, text: canary }],
    scaMethods: [{ authenticationType: canary, authenticationMethodId: canary }],
  }),
};

const elements = [
  ...[
    'Document',
    'CstmrCdtTrfInitn',
    'GrpHdr',
    'PmtInf',
    'CdtTrfTxInf',
    'MsgId',
    'CreDtTm',
    'NbOfTxs',
    'CtrlSum',
    'Amt',
  ],
  ...[
    'InstdAmt',
    'EqvtAmt',
    'ReqdExctnDt',
    'Dt',
    'DtTm',
    'IBAN',
    'Id',
    'LclInstrm',
    'Cd',
    'Cdtr',
    'Dbtr',
    'DbtrAcct',
  ],
  ...[
    'PmtId',
    'PmtTpInf',
    'ChrgBr',
    'BIC',
    'AdrLine',
    'constructor',
    'toString',
    'pain.001.001.02',
    'p:canary',
    canary,
  ],
];
const namespaces = [
  ...[
    'pain.001.001.02',
    'pain.001.001.08',
    'pain.001.001.09',
    'pain.001.003.03',
    'pain.001.001.99',
    'pain.008.001.02',
    canary,
  ],
];
const xmlTexts = [
  ...[
    '',
    ' ',
    '0',
    '-1',
    '.5',
    '1.',
    '+1',
    '1e9',
    '1,5',
    '0.1',
    '9'.repeat(40),
    '2027-02-30',
    'INST',
    'TRF',
    'NaN',
    'x'.repeat(200),
  ],
  ...[
    canary,
    '&#x1F600;',
    '<![CDATA[canary]]>',
    '<canary/>',
    '<!-- canary -->',
    'DE40100100103307118608',
    ' \n\t',
  ],
];

/** A document with elements that are renamed, moved, repeated, removed or filled with something else. */
function randomXml(random: Random): Buffer {
  let document = pain001(random() < 0.3 ? transferXml().repeat(Math.floor(random() * 5)) : undefined);
  if (random() < 0.2) document = document.replace('pain.001.001.03', pick(random, namespaces));
  for (let count = Math.floor(random() * 4); count > 0; count--) {
    const found = [...document.matchAll(/<([A-Za-z0-9]+)[^<>]*>[^<>]*<\/\1>/g)];
    const inner = random() < 0.6 ? pick(random, found) : undefined;
    const name = pick(random, elements);
    const whole = inner?.[0] ?? new RegExp(`<${name}[ >].*?</${name}>`, 's').exec(document)?.[0];
    if (whole === undefined) continue;
    const replacements = [
      () => '',
      () => whole + whole,
      () => `<${name}>${whole}</${name}>`,
      () => `<${name} Ccy="${pick(random, xmlTexts)}">${pick(random, xmlTexts)}</${name}>`,
      () => whole.replace(/>[^<>]*</, () => `>${pick(random, xmlTexts)}<`),
      () => pick(random, xmlTexts),
    ];
    document = document.replace(whole, pick(random, replacements));
  }
  return random() < 0.3 ? damaged(document, random) : Buffer.from(document);
}

const headers = [
  ['PSU-IP-Address', '192.168.8.78'],
  ['TPP-Redirect-URI', `https://tpp.example/${canary}`],
  ['Digest', `SHA-256=${canary}`],
  ['Signature', `keyId="${canary}",headers="digest"`],
  ['PSU-Geo-Location', `GEO:${canary}`],
  [`PSU-${canary}`, canary],
  ['Accept', canary],
  ['Content-Type', `application/json; charset=${canary}`],
] as const;

function randomText(value: Json, random: Random): string | Buffer {
  let changed = value;
  for (let count = Math.floor(random() * 4); count > 0; count--) changed = mutated(changed, random);
  const text = JSON.stringify(changed);
  return random() < 0.3 ? damaged(text, random) : text;
}

/** Judges one random message by both versions. @returns the deviations, and the size of the body */
function judgeRandom(random: Random): { readonly found: readonly Deviation[]; readonly size: number } {
  const changes = random() < 0.2 ? Object.fromEntries([pick(random, headers)]) : {};
  const kind = Math.floor(random() * 9);
  if (kind === 8) return judgeRandomXmlAnswer(changes, random);
  if (kind >= 6) {
    const operation = pick(random, [
      'initiatePayment',
      'getPayment',
      'startAuthorisation',
      'getPaymentStatus',
    ] as const);
    const status = pick(random, [200, 201, 400, 599, 303]);
    const body = randomText(kind === 6 ? bodies.answer : bodies.single, random);
    const judged = { ...answer(operation, status, '', { headers: changes }), body: Buffer.from(body) };
    return {
      found: bothContracts.flatMap((contract) => judgeResponse(contract, inspectResponse(judged))),
      size: judged.body.length,
    };
  }
  const judged = randomRequest(kind, changes, random);
  return { found: deviationsOf(bothContracts, judged), size: judged.body.length };
}

function judgeRandomXmlAnswer(changes: Readonly<Record<string, string>>, random: Random) {
  const inParts = random() < 0.5;
  const xml = randomXml(random);
  const order = randomText(bodies.order, random).toString();
  const text = inParts
    ? multipart(partsOf(undefined, xml.toString())).replace(JSON.stringify(standingOrder()), () => order)
    : '';
  const judged = {
    ...answer(random() < 0.7 ? 'getPeriodicPayment' : 'getPayment', 200, '', {
      product: 'pain.001-instant-sepa-credit-transfers',
      headers: {
        'Content-Type': inParts ? 'multipart/form-data; boundary=AaB03x' : 'application/xml',
        ...changes,
      },
    }),
    body: inParts ? (random() < 0.3 ? damaged(text, random) : Buffer.from(text)) : xml,
  };
  return {
    found: bothContracts.flatMap((contract) => judgeResponse(contract, inspectResponse(judged))),
    size: judged.body.length,
  };
}

function randomRequest(kind: number, changes: Readonly<Record<string, string>>, random: Random) {
  const asJson = (value: Json) => ({ headers: changes, body: Buffer.from(randomText(value, random)) });
  switch (kind) {
    case 0:
      return request.single(undefined, asJson(bodies.single));
    case 1:
      return request.bulk(undefined, asJson(bodies.bulk));
    case 2:
      return request.periodic(undefined, asJson(bodies.periodic));
    case 3:
      return request.authorisation(undefined, asJson(bodies.authorisation));
    case 4:
      return request.xml(
        undefined,
        { headers: changes, body: randomXml(random) },
        pick(random, ['payments', 'bulk-payments'] as const),
      );
    default: {
      const order = randomText(bodies.order, random).toString();
      const parts = multipart(partsOf(undefined, random() < 0.5 ? pain001() : randomXml(random).toString()));
      const body = parts.replace(JSON.stringify(standingOrder()), () => order);
      return request.multipart(undefined, {
        headers: changes,
        body: random() < 0.3 ? damaged(body, random) : Buffer.from(body),
      });
    }
  }
}

describe('the contract and hostile messages', () => {
  test('survives random messages, and shows nothing of them', (t) => {
    const { seed, numRuns } = seededRuns(t, runs);
    const random = seededRandom(seed);
    const paths = new Set<string>();
    let slowest = { us: 0, size: 0, run: 0 };
    for (let run = 1; run <= numRuns; run++) {
      const before = process.threadCpuUsage();
      const { found, size } = judgeRandom(random);
      const { user, system } = process.threadCpuUsage(before);
      const us = user + system;
      if (us > slowest.us) slowest = { us, size, run };
      assert.ok(found.length <= 100, `run ${run}`);
      for (const deviation of found) paths.add(`${deviation.rule} ${deviation.path}`);
      if (run % runsPerReport === 0) {
        const heap = Math.round(process.memoryUsage().heapUsed / 1e6);
        t.diagnostic(
          `${run} runs: heap ${heap} MB, ${paths.size} kinds, slowest ${slowest.us} us of CPU for ${slowest.size} bytes (run ${slowest.run})`,
        );
      }
    }
    for (const path of paths) {
      assert.doesNotMatch(path, secrets);
      assert.match(
        path,
        /^[a-z-]+ (?:body|error|parts|headers|path|status|xml|message)(?:\/[A-Za-z0-9#*_-]+){0,8}$/,
      );
    }
    assert.ok(paths.size > Math.min(100, numRuns / 5), 'the random messages are wrong in many ways'); // few runs find fewer kinds
    t.diagnostic(
      `${paths.size} kinds, slowest ${slowest.us} us of CPU for ${slowest.size} bytes (run ${slowest.run})`,
    );
  });
});
