import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { loadConfig } from '../../../src/config/load.ts';
import { redactConfig } from '../../../src/config/redact.ts';
import { configOf } from '../../kit/gateway.ts';

const environments = { sandbox: { baseUrl: 'https://bank.example/psd2' } };
const sandbox = { PENSTOCK_ENVIRONMENTS_SANDBOX_BASE_URL: 'https://bank.example/psd2' };

const shown = (sections: object) => JSON.stringify(redactConfig(configOf({ environments, ...sections })));

describe('the configuration as it may be shown', () => {
  test('holds no hash of a key or a token, which could be guessed from it', () => {
    const hash = 'ab'.repeat(32);
    const clients = [{ name: 'shop', apiKeySha256: hash }];
    const text = shown({ clients, admin: { operators: [{ name: 'olga', tokenSha256: hash }] } });
    assert.match(text, /"apiKeySha256":"\*\*\*"/);
    assert.match(text, /"tokenSha256":"\*\*\*"/);
    assert.ok(!text.includes(hash));
  });

  const addresses = {
    'a name and a password': 'redis://user:hunter2@redis.example:6379/0',
    'a password alone': 'rediss://:hunter2@redis.example:6379',
    'a password with signs that should have been escaped': 'redis://user:hun@ter2:@hunter2@redis.example',
  };
  for (const [what, url] of Object.entries(addresses)) {
    test(`holds no credentials of Redis: ${what}`, () => {
      const loaded = loadConfig(undefined, { ...sandbox, PENSTOCK_STATE_REDIS: url });
      assert.ok(loaded.kind === 'valid');
      const text = JSON.stringify(redactConfig(loaded.config));
      assert.match(text, /rediss?:\/\/\*\*\*@redis\.example/);
      assert.doesNotMatch(text, /user|hun|ter2/);
    });
  }

  test('is otherwise what is in effect, addresses without credentials included', () => {
    const config = configOf({ environments, state: { redis: 'redis://redis.example:6379/0' } });
    assert.deepEqual(redactConfig(config), JSON.parse(JSON.stringify(config)));
  });
});
