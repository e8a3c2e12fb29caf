/** Masking of secrets in the configuration that operators see. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { settingsInFileSyntax } from '../../../src/config/file-syntax.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { redactConfig } from '../../../src/config/redact.ts';
import { configOf } from '../../kit/gateway.ts';

const environments = { sandbox: { baseUrl: 'https://bank.example/psd2' } };
const sandbox = { PENSTOCK_ENVIRONMENTS_SANDBOX_BASE_URL: 'https://bank.example/psd2' };

const redactedText = (sections: object) =>
  JSON.stringify(redactConfig(configOf({ environments, ...sections })));

describe('the redacted configuration', () => {
  test('masks the hashes of keys and tokens, which could be guessed from them', () => {
    const hash = 'ab'.repeat(32);
    const clients = [{ name: 'shop', apiKeySha256: hash }];
    const text = redactedText({ clients, admin: { operators: [{ name: 'olga', tokenSha256: hash }] } });
    assert.match(text, /"apiKeySha256":"\*\*\*"/);
    assert.match(text, /"tokenSha256":"\*\*\*"/);
    assert.ok(!text.includes(hash));
  });

  const addresses = {
    'a name and a password': 'redis://user:hunter2@redis.example:6379/0',
    'a password alone': 'rediss://:hunter2@redis.example:6379',
    'a password with characters that should have been escaped':
      'redis://user:hun@ter2:@hunter2@redis.example',
  };
  for (const [what, url] of Object.entries(addresses)) {
    test(`masks the credentials of Redis: ${what}`, () => {
      const loaded = loadConfig(undefined, { ...sandbox, PENSTOCK_STATE_REDIS: url });
      assert.ok(loaded.kind === 'valid');
      const text = JSON.stringify(redactConfig(loaded.config));
      assert.match(text, /rediss?:\/\/\*\*\*@redis\.example/);
      assert.doesNotMatch(text, /\buser\b|hun|ter2/);
    });
  }

  const databases = {
    'postgres://penstock:hun@ter2@db.example:5432/penstock':
      'postgres://penstock:***@db.example:5432/penstock',
    'postgresql://penstock@db.example/penstock?password=hunter2&sslmode=require':
      'postgresql://penstock@db.example/penstock?password=***&sslmode=require',
    'postgres://penstock@db.example:5432/penstock': 'postgres://penstock@db.example:5432/penstock',
  };
  for (const [url, masked] of Object.entries(databases)) {
    test(`masks the password of PostgreSQL, but not the name of its role: ${masked}`, () => {
      const redis = { PENSTOCK_STATE_REDIS: 'redis://redis.example:6379/0' };
      const loaded = loadConfig(undefined, { ...sandbox, ...redis, PENSTOCK_STATE_POSTGRES: url });
      assert.ok(loaded.kind === 'valid');
      assert.equal(Object(redactConfig(loaded.config)).state.postgres, masked);
    });
  }

  test('leaves all other settings unchanged, including addresses without credentials', () => {
    const config = configOf({ environments, state: { redis: 'redis://redis.example:6379/0' } });
    assert.deepEqual(redactConfig(config), settingsInFileSyntax(config));
  });

  test('has the units and the structure of the file', () => {
    const text = redactedText({ deadlines: { write: '20s' }, listen: { maxBody: '2MiB' } });
    assert.match(text, /"deadlines":\{"connect":"2s","status":"10s","read":"15s","write":"20s"\}/);
    assert.match(text, /"maxBody":"2MiB"/);
    assert.match(text, /"environments":\{"active":"sandbox","sandbox":\{"baseUrl":"https:/);
  });
});
