import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PisResponse } from '../../../src/request/messages.ts';
import { type Stage, startPipeline } from '../../../src/request/stage.ts';

const response: PisResponse = {
  status: 200,
  headers: [],
  body: Buffer.alloc(0),
  servedFrom: 'bank',
  environment: 'sandbox',
  upstreamMs: 1,
};

/** A stage that records when a request enters and leaves it. */
function recording(name: string, steps: string[]): Stage<string> {
  return async (request, next) => {
    steps.push(`${name} in`);
    try {
      return await next(request + name);
    } finally {
      steps.push(`${name} out`);
    }
  };
}

describe('a pipeline', () => {
  test('passes the request through its stages in order, and the response in reverse order', async () => {
    const steps: string[] = [];
    const handle = startPipeline<string>()
      .use(recording('a', steps))
      .use(recording('b', steps))
      .endWith(async (request) => {
        steps.push(`end with ${request}`);
        return response;
      });

    assert.equal(await handle('>'), response);
    assert.deepEqual(steps, ['a in', 'b in', 'end with >ab', 'b out', 'a out']);
  });

  test('ends at a stage that answers the request itself', async () => {
    const handle = startPipeline<string>()
      .use<string>(async () => response)
      .endWith(() => assert.fail('the request passed the stage'));

    assert.equal(await handle('>'), response);
  });

  test('passes an error through its stages in reverse order', async () => {
    const steps: string[] = [];
    const error = new Error('broken');
    const handle = startPipeline<string>()
      .use(recording('a', steps))
      .endWith(() => Promise.reject(error));

    await assert.rejects(handle('>'), error);
    assert.deepEqual(steps, ['a in', 'a out']);
  });

  test('does not change when another pipeline continues from the same stages', async () => {
    const steps: string[] = [];
    const start = startPipeline<string>().use(recording('a', steps));
    const handle = start.endWith(async () => response);
    start.use(recording('b', steps)).endWith(async () => response);

    await handle('>');
    assert.deepEqual(steps, ['a in', 'a out']);
  });

  test('accepts a stage only behind stages that provide its input', () => {
    const needsNumber: Stage<number> = async (request, next) => next(request);
    const toNumber: Stage<string, number> = async (request, next) => next(request.length);

    startPipeline<string>().use(toNumber).use(needsNumber);
    // @ts-expect-error: no earlier stage converts the string to a number
    startPipeline<string>().use(needsNumber);
  });
});
