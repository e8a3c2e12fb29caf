/** Names of tenants and addresses of banks that contradict each other within one configuration. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { errorsIn, minimalConfig } from './load-text.ts';

const clients = (...names: readonly string[]) =>
  `clients: [${names.map((name, index) => `{ name: ${name}, apiKeySha256: '${String(index).repeat(64)}' }`).join(', ')}]\n`;

/** What is refused, the settings, and the errors without their lines. */
const contradictions: readonly (readonly [what: string, text: string, ...errors: readonly string[]])[] = [
  [
    'a tenant that no client has',
    `${clients('shop')}tenants: { store: { formerly: [old] } }`,
    'tenants.store: no client belongs to this tenant; correct the name, or remove the entry',
  ],
  [
    'a former name that is still the tenant of a client',
    `${clients('shop', 'rival')}tenants: { shop: { formerly: [rival] } }`,
    'tenants.shop.formerly[0]: a client still belongs to this tenant; give the client the tenant shop, or remove the name here',
  ],
  [
    'two tenants that exchange their names',
    `${clients('shop', 'rival')}tenants: { shop: { formerly: [rival] }, rival: { formerly: [shop] } }`,
    'tenants.rival.formerly[0]: this tenant and rival cannot swap their names in one step; rename one of them to a third name first',
    'tenants.shop.formerly[0]: this tenant and shop cannot swap their names in one step; rename one of them to a third name first',
  ],
  [
    'one former name of two tenants',
    `${clients('shop', 'rival')}tenants: { shop: { formerly: [old] }, rival: { formerly: [old] } }`,
    'tenants.rival.formerly[0]: this name is also in tenants.shop.formerly; only one tenant can own its payments',
  ],
  [
    'a tenant that is both continued and retired',
    `${clients('shop')}tenants: { retired: [old], shop: { formerly: [old] } }`,
    'tenants.retired[0]: this name is also in tenants.shop.formerly; remove it from one of the two',
  ],
  [
    'a retired tenant that a client has',
    `${clients('shop')}tenants: { retired: [shop] }`,
    'tenants.retired[0]: a client still belongs to this tenant; remove the client, or remove the name here',
  ],
  [
    'a name of a tenant with a space',
    `${clients('shop')}tenants: { 'a b': {} }`,
    'tenants.a b: expected a name of at most 64 letters, digits, ".", "_" and "-", beginning with a letter or digit',
  ],
];

describe('the cross-checks of tenants', () => {
  for (const [what, text, ...expected] of contradictions) {
    test(`refuse ${what}`, () => {
      const errors = errorsIn(`${minimalConfig}${text}`).map((error) => error.replace(/^:\d+ /, ''));
      assert.deepEqual(errors.toSorted(), expected);
    });
  }

  test('accept the own address as an earlier address, also if it is that of a hub', () => {
    const text =
      'environments: { active: a, a: { baseUrl: https://hub.example, segment: a, movedFrom: [https://hub.example] }, b: { baseUrl: https://hub.example, segment: b } }';
    assert.deepEqual(errorsIn(text), []);
  });

  test('refuse the address of another environment as an earlier address', () => {
    const text =
      'environments: { active: a, a: { baseUrl: https://a.example, movedFrom: [https://b.example/] }, b: { baseUrl: https://b.example } }';
    assert.deepEqual(errorsIn(text), [
      ':1 environments.a.movedFrom[0]: this is the baseUrl of environment b; remove it here',
    ]);
  });

  test('accept the tenant anonymous as a former name, as a retired one, and as the tenant of a gateway without clients', () => {
    for (const text of [
      `${clients('shop')}tenants: { shop: { formerly: [anonymous] } }`,
      `${clients('shop')}tenants: { retired: [anonymous] }`,
      'tenants: { anonymous: { formerly: [shop] } }',
    ])
      assert.deepEqual(errorsIn(`${minimalConfig}${text}`), []);
  });
});
