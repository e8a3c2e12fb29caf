import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { contractHash, prepareContract } from '../../../src/contract/contract.ts';
import { type Profile, parseProfile } from '../../../src/contract/profile.ts';
import { contract6, harmfulOf, periodic, request, single, verdictOf } from '../../kit/judged.ts';

const folder = join(import.meta.dirname, '../../../examples/contract-profiles');

function exampleOf(name: string): Profile {
  const parsed = parseProfile(parse(readFileSync(join(folder, `${name}.yaml`), 'utf8')));
  return 'profile' in parsed ? parsed.profile : assert.fail(JSON.stringify(parsed.errors));
}

const stricter = await prepareContract({ standardVersion: '1.3.11', profile: exampleOf('stricter-bank') });
const laxer = await prepareContract({ standardVersion: '1.3.6', profile: exampleOf('laxer-bank') });

describe('the profile of a bank', () => {
  test('adds the restrictions of a stricter bank', () => {
    const refused: readonly (readonly [object, string])[] = [
      [{ creditorName: 'x'.repeat(36) }, 'max-length body/creditorName'],
      [{ creditorName: 'Müller' }, 'characters body/creditorName'],
      [{ remittanceInformationUnstructured: undefined }, 'required body/remittanceInformationUnstructured'],
      [{ creditorAddress: { country: 'DE' } }, 'forbidden body/creditorAddress'],
      [{ instructedAmount: { currency: 'USD', amount: '1.00' } }, 'enum body/instructedAmount/currency'],
      [{ requestedExecutionDate: '2027-03-01' }, 'ignored body/requestedExecutionDate'],
    ];
    assert.deepEqual(harmfulOf(stricter, request.single()), []);
    for (const [changes, expected] of refused)
      assert.deepEqual(harmfulOf(stricter, request.single(single({ ...changes }))), [expected]);
    assert.deepEqual(harmfulOf(stricter, request.periodic(periodic({ frequency: 'Daily' }))), [
      'enum body/frequency',
    ]);
    assert.deepEqual(
      harmfulOf(stricter, request.single(undefined, { headers: { 'PSU-IP-Address': '2001:db8::1' } })),
      ['ipv6 headers/PSU-IP-Address'],
    );
  });

  test('states that a stricter bank makes a payment at once', () => {
    const judged = request.single(single({ requestedExecutionDate: '2027-03-01' }));
    assert.deepEqual(verdictOf(stricter, judged), [
      'harmful ignored body/requestedExecutionDate executed-at-once',
    ]);
  });

  test('adds what a laxer bank accepts', () => {
    const accepted = [
      request.single(single({ requestedExecutionDate: '2027-03-01' })),
      request.single(single({ debtorName: 'PSU', bookingText: 'Rent' })),
      request.single(single({ debtorAccount: undefined })),
      request.single(single({ creditorName: 'x'.repeat(140) }), { product: 'domestic-credit-transfers' }),
    ];
    for (const judged of accepted) {
      assert.deepEqual(verdictOf(laxer, judged), []);
      assert.notDeepEqual(verdictOf(contract6, judged), []);
    }
    const withoutAddress = request.single(undefined, { headers: { 'PSU-IP-Address': undefined } });
    assert.deepEqual(verdictOf(laxer, withoutAddress), ['usual required headers/PSU-IP-Address none']);
    assert.deepEqual(harmfulOf(laxer, request.single(single({ bookingText: 'x'.repeat(28) }))), [
      'max-length body/bookingText',
    ]);
  });

  test('is refused with the place of each mistake', () => {
    const parsed = parseProfile({
      products: ['a/b'],
      fields: [
        { body: 'payment', field: 'creditorName' },
        { body: 'singlePayment', field: 'a b', pattern: '(a+)+' },
      ],
      level: [],
    });
    assert.ok('errors' in parsed);
    const paths = new Set(parsed.errors.map(({ path }) => path.join('.')));
    assert.deepEqual([...paths].toSorted(), [
      'fields.0.body',
      'fields.1.field',
      'fields.1.pattern',
      'level',
      'products.0',
    ]);
  });

  test('is refused if it restricts what it cannot', () => {
    const fields = [
      [{ field: 'creditorNmae', maxLength: 35 }, 'field'],
      [{ body: 'bulkPayment', field: 'payments', maxLength: 35 }, 'field'],
      [{ field: 'creditorName' }, 'field'],
      [{ field: 'creditorName', presence: 'required', effect: 'executed-at-once' }, 'effect'],
      [{ field: 'creditorName', presence: 'forbidden', maxLength: 35 }, 'presence'],
    ] as const;
    for (const [change, expected] of fields) {
      const parsed = parseProfile({ fields: [{ body: 'singlePayment', ...change }] });
      const paths = 'errors' in parsed && parsed.errors.map(({ path }) => path);
      assert.deepEqual(paths, [['fields', 0, expected]]);
    }
    const levels = [{ path: 'headers/PSU-IP-Address', rule: 'requird', level: 'usual' }];
    assert.ok('errors' in parseProfile({ levels }));
    const misplaced = [{ path: 'header/PSU-IP-Address', rule: 'required', level: 'usual' }];
    assert.ok('errors' in parseProfile({ levels: misplaced }));
  });

  test('changes the hash of the contract, as a zone does', () => {
    const options = [
      { standardVersion: '1.3.6' },
      { standardVersion: '1.3.11' },
      { standardVersion: '1.3.6', profile: exampleOf('laxer-bank') },
      { standardVersion: '1.3.6', profile: exampleOf('stricter-bank') },
      { standardVersion: '1.3.6', timeZone: 'Europe/Amsterdam' },
    ];
    assert.equal(new Set(options.map(contractHash)).size, options.length);
    assert.equal(contractHash({ standardVersion: '1.3.9' }), contractHash({ standardVersion: '1.3.6' }));
    assert.equal(contractHash({ standardVersion: '1.4' }), contractHash({ standardVersion: '1.3.11' }));
    assert.equal(contract6.hash, contractHash({ standardVersion: '1.3.6' }));
  });

  test('an empty one changes nothing but the hash', async () => {
    const parsed = parseProfile({});
    assert.ok('profile' in parsed);
    const contract = await prepareContract({ standardVersion: '1.3.6', profile: parsed.profile });
    assert.deepEqual(verdictOf(contract, request.single()), []);
  });
});
