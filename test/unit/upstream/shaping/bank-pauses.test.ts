import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  createBankPauses,
  type Pause,
  type ScopedCall,
} from '../../../../src/upstream/shaping/bank-pauses.ts';

const [status, write] = ['status', 'write'] as const;

/** `status shop transfers one` */
function callOf(text: string): ScopedCall {
  const [lane, tenant = '', product, payment] = text.split(' ');
  assert.ok(lane === 'status' || lane === 'write' || lane === 'read');
  return { lane, tenant, product, payment };
}

const textOf = ({ scope, lane, tenant, product }: Pause) =>
  [scope, lane, tenant, product].filter((part) => part !== undefined).join(' ');

/** What happens, in order: `- call` was refused, `+ call` was answered; numbers are milliseconds that pass. */
function after(...events: readonly (string | number)[]) {
  let nowMs = 0;
  const pauses = createBankPauses(() => nowMs);
  for (const event of events) {
    if (typeof event === 'number') nowMs += event;
    else if (event.startsWith('+ ')) pauses.onAnswered(callOf(event.slice(2)));
    else pauses.onRefused(callOf(event.slice(2)), 60_000, false);
  }
  return pauses;
}

const [one, two] = [`${status} shop transfers one`, `${status} shop transfers two`];
const otherProduct = `${status} shop instant three`;
const ofRival = `${status} rival transfers four`;
const initiation = `${write} shop transfers`;

/** Events, and all scopes that pause after them. */
const rows: readonly (readonly [
  title: string,
  events: readonly (string | number)[],
  paused: readonly string[],
])[] = [
  ['one payment', [`- ${one}`], ['payment status shop transfers']],
  ['one payment, five times', Array(5).fill(`- ${one}`), ['payment status shop transfers']],
  ['an initiation', [`- ${initiation}`], ['product write shop transfers']],
  [
    'two payments of a product',
    [`- ${one}`, `- ${two}`],
    ['product status shop transfers', 'payment status shop transfers', 'payment status shop transfers'],
  ],
  [
    'payments of two products',
    [`- ${one}`, `- ${otherProduct}`],
    ['tenant status shop', 'payment status shop transfers', 'payment status shop instant'],
  ],
  [
    'payments of two TPPs',
    [`- ${one}`, `- ${ofRival}`],
    ['lane status', 'payment status shop transfers', 'payment status rival transfers'],
  ],
  [
    'a status read and an initiation',
    [`- ${one}`, `- ${initiation}`],
    ['environment', 'product write shop transfers', 'payment status shop transfers'],
  ],
  [
    'two payments, with an answer in between',
    [`- ${one}`, 1, `+ ${status} shop transfers other`, `- ${two}`],
    ['payment status shop transfers', 'payment status shop transfers'],
  ],
  [
    'two payments, with an answer to another TPP in between, which says nothing about this one',
    [`- ${one}`, 1, `+ ${ofRival}`, `+ ${otherProduct.replace('three', 'five')}`, `- ${two}`],
    ['product status shop transfers', 'payment status shop transfers', 'payment status shop transfers'],
  ],
  [
    'the read and the status of one payment',
    [`- ${one.replace(status, 'read')}`, `- ${one}`],
    ['payment read shop transfers', 'payment status shop transfers'],
  ],
  [
    'two payments, ten seconds apart',
    [`- ${one}`, 10_001, `- ${two}`],
    ['payment status shop transfers', 'payment status shop transfers'],
  ],
];

describe('after the bank has refused', () => {
  for (const [title, events, paused] of rows)
    test(`${title}, it pauses exactly what this may concern`, () => {
      assert.deepEqual(
        after(...events)
          .all()
          .map(textOf),
        paused,
      );
    });
});

describe('a pause', () => {
  test('concerns the calls in its scope, and no others', () => {
    const pauses = after(`- ${one}`, `- ${initiation.replace('shop', 'rival')}`, `+ ${ofRival}`);
    const isPaused = (text: string) => pauses.of(callOf(text)) !== undefined;
    const calls = [
      one,
      `write rival transfers`,
      two,
      initiation,
      otherProduct,
      ofRival,
      'write rival instant',
    ];
    // The refusals have the environment in common, which pauses: so they are ten seconds apart.
    assert.ok(calls.every(isPaused));
    const apart = after(`- ${one}`, 10_001, `- ${initiation.replace('shop', 'rival')}`);
    assert.deepEqual(
      calls.map((text) => apart.of(callOf(text))?.scope),
      ['payment', 'product', undefined, undefined, undefined, undefined, undefined],
    );
  });

  test('ends by time, and the longest one counts', () => {
    let nowMs = 0;
    const pauses = createBankPauses(() => nowMs);
    pauses.onRefused(callOf(one), 2_000, false);
    pauses.onRefused(callOf(two), 5_000, false);
    pauses.onRefused(callOf(one), 1_000, false);
    assert.deepEqual([pauses.of(callOf(one))?.pausedMs, pauses.of(callOf(one))?.scope], [5_000, 'product']);
    nowMs = 5_000;
    assert.deepEqual([pauses.of(callOf(one)), pauses.all()], [undefined, []]);
  });

  test('of a payment that another instance has read is not adopted, but counts as evidence', () => {
    const pauses = createBankPauses(() => 0);
    pauses.onRefused(callOf(one), 1_000, true);
    assert.deepEqual(pauses.all(), []);
    pauses.onRefused(callOf(two), 1_000, true);
    assert.equal(pauses.of(callOf(one))?.scope, 'product');
  });

  test('of single payments needs bounded memory, and goes when it is over', () => {
    let nowMs = 0;
    const pauses = createBankPauses(() => nowMs);
    for (let count = 0; count < 10_500; count++)
      pauses.onRefused(
        { lane: 'status', tenant: 'shop', product: 'transfers', payment: `${count}` },
        1_000,
        false,
      );
    assert.equal(pauses.all().filter(({ scope }) => scope === 'payment').length, 10_000);
    nowMs = 20_000;
    pauses.onRefused(callOf(`${status} shop transfers later`), 1_000, false);
    assert.deepEqual(pauses.all().map(textOf), ['payment status shop transfers']);
  });
});
