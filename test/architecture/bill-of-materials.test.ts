import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { z } from 'zod';
import { billOf } from '../../scripts/supply/bill-of-materials.ts';
import { allowedLicences } from './licences.ts';

const root = join(import.meta.dirname, '../..');
const project = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
const bill = billOf(project, lock);

/** What CycloneDX 1.6 wants of the parts that we write: https://cyclonedx.org/schema/bom-1.6.schema.json */
const licence = z.union([
  z.strictObject({ license: z.strictObject({ id: z.enum(allowedLicences) }) }),
  z.strictObject({ expression: z.string().regex(/^[\w.-]+( (OR|AND) [\w.-]+)+$/) }),
]);
const named = {
  'bom-ref': z.string().min(1),
  name: z.string().regex(/^[^@/]+$/),
  version: z.string().regex(/^\d+\.\d+\.\d+/),
  licenses: z.array(licence).length(1),
  purl: z.string().regex(/^pkg:npm\/(%40[^@/]+\/)?[^@/]+@\d+\.\d+\.\d+[^@]*$/),
};
const hash = z.strictObject({ alg: z.literal('SHA-512'), content: z.string().regex(/^[0-9a-f]{128}$/) });
const form = z.strictObject({
  $schema: z.literal('http://cyclonedx.org/schema/bom-1.6.schema.json'),
  bomFormat: z.literal('CycloneDX'),
  specVersion: z.literal('1.6'),
  version: z.literal(1),
  metadata: z.strictObject({
    component: z.strictObject({ ...named, type: z.literal('application'), description: z.string() }),
  }),
  components: z.array(
    z.strictObject({
      ...named,
      ...{ type: z.literal('library'), group: z.string().startsWith('@').optional() },
      ...{ scope: z.enum(['required', 'optional', 'excluded']), hashes: z.array(hash).min(1) },
    }),
  ),
  dependencies: z.array(z.strictObject({ ref: z.string(), dependsOn: z.array(z.string()) })),
});

describe('the bill of materials', () => {
  test('is CycloneDX 1.6, with version, licence and hash of each package', () => {
    form.parse(bill);
  });

  test('names every package of the lock file once, and what it says of it', () => {
    const paths = Object.keys(lock.packages).filter((path) => path !== '');
    assert.deepEqual(bill.components.map((one) => one['bom-ref']).toSorted(), paths.toSorted());
    for (const { 'bom-ref': path, group, name, version, hashes, purl } of bill.components) {
      const fullName = group === undefined ? name : `${group}/${name}`;
      assert.ok(path.endsWith(`node_modules/${fullName}`), path);
      assert.equal(version, lock.packages[path].version);
      assert.equal(decodeURIComponent(purl), `pkg:npm/${fullName}@${version}`);
      const [{ content } = { content: '' }] = hashes ?? [];
      assert.equal(`sha512-${Buffer.from(content, 'hex').toString('base64')}`, lock.packages[path].integrity);
    }
  });

  test('says which packages serve: whatever those of package.json need, and nothing else', () => {
    const needs = new Map(bill.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
    const reached = new Set<string>();
    const reach = (ref: string): void => {
      if (reached.has(ref)) return;
      reached.add(ref);
      needs.get(ref)?.forEach(reach);
    };
    for (const name of Object.keys(project.dependencies)) reach(`node_modules/${name}`);
    const required = bill.components.filter(({ scope }) => scope === 'required');
    assert.deepEqual([...reached].toSorted(), required.map((one) => one['bom-ref']).toSorted());
  });

  test('tells of each package what it needs, and needs nothing that it does not name', () => {
    const refs = new Set([bill.metadata.component, ...bill.components].map((one) => one['bom-ref']));
    assert.equal(bill.dependencies.length, refs.size);
    for (const { ref, dependsOn } of bill.dependencies)
      for (const one of [ref, ...dependsOn]) assert.ok(refs.has(one), `${ref} needs ${one}`);
    const direct = bill.dependencies.find(({ ref }) => ref === bill.metadata.component['bom-ref'])?.dependsOn;
    const wanted = { ...project.dependencies, ...project.devDependencies, ...project.optionalDependencies };
    assert.deepEqual(
      direct,
      Object.keys(wanted)
        .map((name) => `node_modules/${name}`)
        .toSorted(),
    );
  });

  test('is the same each time, in whatever order the lock file names its packages', () => {
    const packages = Object.fromEntries(Object.entries(lock.packages).toReversed());
    assert.equal(JSON.stringify(billOf(project, { packages } as typeof lock)), JSON.stringify(bill));
  });

  test('finds what a package needs as Node does: beside it, then higher up', () => {
    const version = '1.0.0';
    const { dependencies } = billOf(project, {
      packages: {
        '': { version, dependencies: { a: version } },
        'node_modules/a': {
          version,
          dependencies: { b: version, '@s/c': version },
          peerDependencies: { d: version },
        },
        'node_modules/b': { version },
        'node_modules/a/node_modules/b': { version, dependencies: { '@s/c': version } },
        'node_modules/@s/c': { version },
      },
    });
    const needs = Object.fromEntries(dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
    assert.deepEqual(needs['node_modules/a'], ['node_modules/@s/c', 'node_modules/a/node_modules/b']);
    assert.deepEqual(needs['node_modules/a/node_modules/b'], ['node_modules/@s/c']);
  });
});
