/** deploy/cloudnative-pg: the values name what the operator creates for the cluster, and the cluster loses no confirmed commit. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { at, documentsIn, listAt } from './files.ts';

const documents = documentsIn('deploy/cloudnative-pg/cluster.yaml');
const [cluster] = documents;
const [values] = documentsIn('deploy/cloudnative-pg/values.yaml');
const [defaults] = documentsIn('deploy/helm/penstock/values.yaml');

describe('the PostgreSQL of CloudNativePG', () => {
  test('is one cluster with a standby that confirms each commit, also after the loss of one of three instances', () => {
    assert.equal(documents.length, 1);
    assert.deepEqual([at(cluster, 'apiVersion'), at(cluster, 'kind')], ['postgresql.cnpg.io/v1', 'Cluster']);
    const { number, ...synchronous } = Object(at(cluster, 'spec', 'postgresql', 'synchronous'));
    assert.deepEqual(synchronous, { method: 'any', dataDurability: 'required', failoverQuorum: true });
    assert.ok(number >= 1 && number < Number(at(cluster, 'spec', 'instances')) - 1);
  });

  // https://cloudnative-pg.io/documentation/current/applications/: the Secret is named after the cluster, and has the member `uri`.
  test('creates the Secret that the values of the chart name', () => {
    const name = String(at(cluster, 'metadata', 'name'));
    assert.deepEqual(values, { postgres: { secretName: `${name}-app`, key: 'uri' } });
    assert.deepEqual(Object.keys(Object(at(defaults, 'postgres'))), ['secretName', 'key']);
    assert.ok(listAt(defaults, 'networkPolicy', 'egressPorts').includes(5432));
  });

  test('has a database whose owner is the role of the gateway', () => {
    assert.deepEqual(at(cluster, 'spec', 'bootstrap', 'initdb'), { database: 'penstock', owner: 'penstock' });
  });
});
