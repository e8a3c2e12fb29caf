/** Every example exchange of `test/examples`: request bytes as they were sent, answer bytes as the bank gave them. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { call, pairs } from '../kit/call.ts';
import { type ExampleAnswer, examples } from '../kit/examples.ts';
import { type Field, forwardedFields, valuesOf } from '../kit/fields.ts';
import { publicUrl, startBank, startGateway } from '../kit/gateway.ts';

for (const example of examples) {
  describe(`${example.name}, to a bank at /psd2/v1`, () => {
    for (const answer of example.answers) {
      const version = answer.standard === 'both' ? '' : `, as of ${answer.standard}`;

      test(`is passed on, and its answer ${answer.name}${version} comes back with nothing changed but links`, async (t) => {
        const bank = await startBank(t, { segment: 'psd2' });
        const sandbox = { baseUrl: bank.baseUrl, standardVersion: versionOf(answer) };
        const gateway = await startGateway(t, { environments: { sandbox }, standard: { segment: 'psd2' } });
        const { status, body = '', headers } = atTheBank(answer, bank.baseUrl);
        bank.injectFault({ name: 'status', status, body, headers: Object.fromEntries(headers) });

        const { operation, name: _, answers: __, ...request } = example;
        const reply = await call(gateway.url, { ...request, path: `/psd2/v1${request.path}` });

        const arrived = bank.requests[0];
        assert.equal(bank.requests.length, 1);
        assert.equal(arrived?.operation, operation);
        assert.equal(arrived?.body.toString(), example.body ?? '');
        assert.deepEqual(forwardedFields(pairs(arrived?.rawHeaders ?? [])), forwardedFields(example.headers));

        assert.equal(reply.status, status);
        assert.equal(reply.text, published(body, bank.baseUrl));
        for (const [field, value] of headers) {
          assert.deepEqual(valuesOf(reply.fields, field), [published(value, bank.baseUrl)]);
        }
      });
    }
  });
}

const versionOf = ({ standard }: ExampleAnswer) => (standard === 'both' ? '1.3.11' : standard);

/** The example's bank has the origin of the bank under test. */
function atTheBank(answer: ExampleAnswer, origin: string): ExampleAnswer {
  const here = (text: string) => text.replaceAll('https://api.testbank.com', origin);
  return {
    ...answer,
    headers: answer.headers.map(([name, value]): Field => [name, here(value)]),
    ...(answer.body !== undefined && { body: here(answer.body) }),
  };
}

/**
 * What a TPP sees: links to operations lead to the gateway, every other byte stays. Most examples of the standard omit the payment product
 * in their links; the gateway does not accept such a path, so these links stay.
 */
function published(text: string, origin: string): string {
  const links = new RegExp(`("href":"|^)(${origin})?(?:/psd2)?(/v1/[^"?]+)`, 'g');
  return text.replaceAll(links, (written, before: string, absolute: string | undefined, path: string) => {
    if (absolute !== undefined && !written.includes(`${origin}/psd2/v1/`)) return written;
    return operationPath.test(path) ? `${before}${publicUrl}/psd2${path}` : written;
  });
}

const subResource = '(?:cancellation-)?authorisations(?:/[^/]+)?|status';
const operationPath = new RegExp(
  `^/v1/(?:bulk-|periodic-)?payments/[^/]+(?:/(?!(?:${subResource})$)[^/]+(?:/(?:${subResource}))?)?$`,
);
