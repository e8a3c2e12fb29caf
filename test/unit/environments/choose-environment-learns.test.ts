import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chooseEnvironment } from '../../../src/environments/choose-environment.ts';
import type { Home, Lasting } from '../../../src/environments/payment-record.ts';
import type { PisRequest } from '../../../src/flow/messages.ts';
import { createLogLines } from '../../kit/log-lines.ts';
import { factsOf, listeningTo } from './facts.ts';
import { answerOf, authorisation, cancellation, initiation, shop, statusRead } from './requests.ts';

const inProduction: Home = { environment: 'production', tenant: 'shop' };

describe('chooseEnvironment learns', () => {
  interface Learnt {
    readonly id: string;
    readonly home: Home;
    readonly lasts: Lasting;
  }

  /** What is learnt from the answer to a request. */
  async function learntFrom(request: PisRequest, body: unknown, status = 201) {
    const learnt: Learnt[] = [];
    const { log, lines } = createLogLines();
    const facts = listeningTo(
      factsOf({ active: 'production', homes: [inProduction], log }),
      (id, home, lasts) => void learnt.push({ id, home, lasts }),
    );
    const answer = answerOf('production', body, status);
    assert.equal(await chooseEnvironment(facts)(request, async () => answer), answer);
    return { learnt, lines };
  }

  test('where a payment was born, and whose it is, from the answer to its initiation', async () => {
    for (const status of [200, 201]) {
      const { learnt } = await learntFrom(initiation({ client: shop }), { paymentId: 'p-1' }, status);
      assert.deepEqual(learnt, [{ id: 'p-1', home: inProduction, lasts: 'remembered' }]);
    }
  });

  test('standing orders without an end', async () => {
    const { learnt } = await learntFrom(initiation({}, 'periodic-payments'), { paymentId: 'p-1' });
    assert.deepEqual(
      learnt.map(({ lasts }) => lasts),
      ['endless'],
    );
  });

  test('nothing from a refusal of the bank, or from the answer to anything else', async () => {
    for (const status of [202, 400, 409, 500]) {
      assert.deepEqual((await learntFrom(initiation(), { paymentId: 'p-1' }, status)).learnt, []);
    }
    for (const request of [statusRead(), authorisation(), cancellation()]) {
      assert.deepEqual((await learntFrom(request, { paymentId: 'p-1' })).learnt, []);
    }
  });

  test('nothing from an answer that names no payment: it still goes to the TPP, and the log says so', async () => {
    const { learnt, lines } = await learntFrom(initiation(), { transactionStatus: 'RCVD' });
    assert.deepEqual(learnt, []);
    assert.deepEqual(
      lines.map(({ level, message }) => [level, message]),
      [['warn', 'the bank accepted a payment without naming a paymentId']],
    );
  });

  test('before the TPP has the answer: its next request may come at once', async () => {
    const learning = Promise.withResolvers<void>();
    const facts = factsOf();
    let answered = false;
    const stage = chooseEnvironment({
      ...facts,
      affinity: { ...facts.affinity, learn: () => learning.promise },
    });
    const answer = stage(initiation(), async () => answerOf('sandbox', { paymentId: 'p-1' })).then(() => {
      answered = true;
    });
    await new Promise(setImmediate);
    assert.equal(answered, false);
    learning.resolve();
    await answer;
  });
});
