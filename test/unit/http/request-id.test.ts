import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { requestIdOf, responseIdOf } from '../../../src/http/request-id.ts';
import type { HeaderFields } from '../../../src/pis/headers.ts';

const uuid = '99391c7e-ad88-49ec-a2ad-99ddcb1f7721';
const of = (...values: readonly string[]): HeaderFields => values.map((value) => ['x-Request-Id', value]);

describe('an X-Request-ID', () => {
  test('may be a UUID of any version, in upper or lower case, and is returned unchanged', () => {
    const spelled = fc.uuid().chain((id) => fc.constantFrom(id, id.toUpperCase()));
    fc.assert(
      fc.property(spelled, (id) => {
        assert.equal(requestIdOf(of(id)), id);
        assert.equal(responseIdOf(of(id)), id);
      }),
    );
    for (const id of ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff']) {
      assert.equal(requestIdOf(of(id)), id);
    }
  });

  test('is refused if it is missing, repeated or not a UUID', () => {
    const wrong = [
      of(),
      of(''),
      of(uuid, uuid),
      of(`${uuid} `),
      of(` ${uuid}`),
      of(`{${uuid}}`),
      of(`urn:uuid:${uuid}`),
      of(uuid.replaceAll('-', '')),
      of(`${uuid},${uuid}`),
      of(uuid.replace('9', 'g')),
      of(`${uuid}\n`),
      of('９'.repeat(8) + uuid.slice(8)),
    ];
    for (const fields of wrong) {
      assert.throws(() => requestIdOf(fields), { code: 'REQUEST_ID_INVALID', field: 'X-Request-ID' });
    }
  });

  test('is replaced with a new id in the response if it is missing, repeated or not a UUID', () => {
    for (const fields of [of(), of('no uuid'), of(uuid, uuid)]) {
      const [one, other] = [responseIdOf(fields), responseIdOf(fields)];
      assert.match(one, /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
      assert.notEqual(one, other);
      assert.notEqual(one, uuid);
    }
  });
});
