import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PisResponse } from '../../../src/request/messages.ts';
import { type Stage, startPipeline } from '../../../src/request/stage.ts';

const answer: PisResponse = {
  status: 200,
  headers: [],
  body: Buffer.alloc(0),
  servedFrom: 'bank',
  environment: 'sandbox',
  upstreamMs: 1,
};

/** A stage that notes when it is passed, on the way in and on the way back. */
function noting(name: string, notes: string[]): Stage<string> {
  return async (request, next) => {
    notes.push(`${name} in`);
    try {
      return await next(request + name);
    } finally {
      notes.push(`${name} back`);
    }
  };
}

describe('a line', () => {
  test('is passed in the order in which it is written, and backwards by the answer', async () => {
    const notes: string[] = [];
    const line = startPipeline<string>()
      .use(noting('a', notes))
      .use(noting('b', notes))
      .endWith(async (request) => {
        notes.push(`arrived as ${request}`);
        return answer;
      });

    assert.equal(await line('>'), answer);
    assert.deepEqual(notes, ['a in', 'b in', 'arrived as >ab', 'b back', 'a back']);
  });

  test('may end at any stage that answers by itself', async () => {
    const line = startPipeline<string>()
      .use<string>(async () => answer)
      .endWith(() => assert.fail('nobody should get here'));

    assert.equal(await line('>'), answer);
  });

  test('lets every stage see an error on its way back', async () => {
    const notes: string[] = [];
    const error = new Error('broken');
    const line = startPipeline<string>()
      .use(noting('a', notes))
      .endWith(() => Promise.reject(error));

    await assert.rejects(line('>'), error);
    assert.deepEqual(notes, ['a in', 'a back']);
  });

  test('may be branched: what is strung on later does not change what was there', async () => {
    const notes: string[] = [];
    const start = startPipeline<string>().use(noting('a', notes));
    const plain = start.endWith(async () => answer);
    start.use(noting('b', notes)).endWith(async () => answer);

    await plain('>');
    assert.deepEqual(notes, ['a in', 'a back']);
  });

  test('takes a stage only behind those that provide what it needs', () => {
    const needsNumber: Stage<number> = async (request, next) => next(request);
    const toNumber: Stage<string, number> = async (request, next) => next(request.length);

    startPipeline<string>().use(toNumber).use(needsNumber);
    // @ts-expect-error: no earlier stage makes a number of the string
    startPipeline<string>().use(needsNumber);
  });
});
