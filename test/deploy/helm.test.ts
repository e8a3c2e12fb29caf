/** deploy/helm/penstock: the values fit their schema, and the templates fit the values and the gateway. */

import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { Ajv } from 'ajv';
import { stringify } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';
import { isMapping } from '../../src/config/object-path.ts';
import { root } from '../kit/command.ts';
import { withFile } from '../kit/folder.ts';
import { at, documentsIn, textOf } from './files.ts';

const folder = 'deploy/helm/penstock';
const [chart] = documentsIn(`${folder}/Chart.yaml`);
const [defaults] = documentsIn(`${folder}/values.yaml`);
const [example] = documentsIn(`${folder}/ci/example-values.yaml`);
const values = merge(defaults, example);
const schemaText = textOf(`${folder}/values.schema.json`);
const validate = new Ajv({ strict: false, allErrors: true }).compile(JSON.parse(schemaText));
const templates = globSync(`${folder}/templates/*.{yaml,tpl,txt}`, { cwd: root }).map((file) => ({
  file,
  text: textOf(file),
}));
const deployment = textOf(`${folder}/templates/deployment.yaml`);
const migration = textOf(`${folder}/templates/migration.yaml`);
const allTemplates = templates.map(({ text }) => text).join('\n');

/** As Helm merges value files: mappings by key; a later value replaces any other one. */
function merge(first: unknown, second: unknown): unknown {
  if (!isMapping(first) || !isMapping(second)) return second;
  const merged = Object.entries(second).map(([key, value]) => [
    key,
    key in first ? merge(first[key], value) : value,
  ]);
  return { ...first, ...Object.fromEntries(merged) };
}

/** The errors of the schema, one line each. */
function errorsIn(candidate: unknown): readonly string[] {
  validate(candidate);
  return (validate.errors ?? []).map(({ instancePath, message, params }) =>
    `${instancePath}: ${message} ${params.additionalProperty ?? ''}`.trim(),
  );
}

const configOf = (candidate: unknown) =>
  withFile(stringify(at(candidate, 'config')), (file) =>
    loadConfig(file, {
      PENSTOCK_STATE_POSTGRES: 'postgres://user:password@postgres.example:5432/penstock',
      PENSTOCK_STATE_REDIS: 'rediss://user:password@redis.example:6379/0',
    }),
  );

describe('the values of the Helm chart', () => {
  test('fit the schema, by default with one environment, and in the example', () => {
    const environment = { config: { environments: { sandbox: { baseUrl: 'https://bank.example' } } } };
    assert.deepEqual(errorsIn(merge(defaults, environment)), []);
    assert.deepEqual(errorsIn(values), []);
    assert.deepEqual(errorsIn(defaults), ["/config: must have required property 'environments'"]);
  });

  test('are refused if a name is unknown, in the chart and in the configuration of the gateway', () => {
    for (const [wrong, expected] of [
      [{ autoscale: {} }, ': must NOT have additional properties autoscale'],
      [{ image: { name: 'x' } }, '/image: must NOT have additional properties name'],
      [
        { config: { deadlines: { put: '1s' } } },
        '/config/deadlines: must NOT have additional properties put',
      ],
      [{ config: { listen: { port: 'https' } } }, '/config/listen/port: must be integer'],
      [{ networkPolicy: { operators: [] } }, '/networkPolicy/operators: must NOT have fewer than 1 items'],
      [{ config: { clients: [{ name: 'x'.repeat(65) }] } }, '/config/clients/0/name: must match pattern'],
    ] as const)
      assert.ok(
        errorsIn(merge(values, wrong)).some((error) => error.startsWith(expected)),
        `${expected}: ${errorsIn(merge(values, wrong))}`,
      );
  });

  test('have a schema that Helm can read: Go has no regular expressions with lookaround', () => {
    assert.doesNotMatch(schemaText, /\(\?[=!<]/);
    assert.match(schemaText, /"maxLength": 64/);
  });

  test('contain a valid configuration of the gateway', () => {
    const loaded = configOf(values);
    assert.ok(loaded.kind === 'valid', JSON.stringify(loaded));
    const { listen, admin, deadlines, environments } = loaded.config;
    assert.deepEqual([listen.host, admin.host], ['0.0.0.0', '0.0.0.0']);
    assert.equal(admin.tokenFile, null, 'each operator has a token of their own');
    assert.ok(admin.operators.length > 1);

    const stopMs = 1_000 + Math.max(deadlines.status, deadlines.read, deadlines.write) + 5_000;
    const [graceSeconds, preStopSeconds] = ['terminationGracePeriodSeconds', 'preStopSeconds'].map((name) =>
      Number(at(values, name)),
    );
    assert.ok(Number(graceSeconds) * 1_000 > stopMs + Number(preStopSeconds) * 1_000);

    const mounts = Object.values(Object(at(values, 'secretMounts'))).map(
      (mount) => `${at(mount, 'mountPath')}/`,
    );
    const files = [listen.tls, ...environments.all.map(({ tls }) => tls)].flatMap((tls) => [
      tls?.certFile,
      tls?.keyFile,
    ]);
    for (const file of files)
      assert.ok(
        mounts.some((mount) => file?.startsWith(mount)),
        file,
      );
  });

  test('are the ones that the templates use', () => {
    const used = [...allTemplates.matchAll(/\.Values\.([\w.]+)/g)].map(([, path = '']) => path.split('.'));
    assert.ok(used.length > 20);
    for (const path of used.filter(([section]) => section !== 'config'))
      assert.notEqual(at(values, ...path), undefined, path.join('.'));
    const sections = new Set(used.map(([section]) => section));
    assert.deepEqual([...sections].toSorted(), Object.keys(Object(defaults)).toSorted());
  });
});

describe('the templates of the Helm chart', () => {
  test('have the version of the package', () => {
    const { version } = JSON.parse(textOf('package.json'));
    assert.deepEqual([at(chart, 'version'), at(chart, 'appVersion')], [version, version]);
  });

  test('create the expected kinds', () => {
    assert.deepEqual([...allTemplates.matchAll(/^kind: (\w+)$/gm)].map(([, kind = '']) => kind).toSorted(), [
      'ConfigMap', // the configuration
      'ConfigMap', // the configuration, for the migration
      'ConfigMap', // the dashboard
      'Deployment',
      'HorizontalPodAutoscaler',
      'Job',
      'NetworkPolicy',
      'PodDisruptionBudget',
      'PrometheusRule',
      'Service',
      'Service',
      'ServiceMonitor',
    ]);
  });

  test('probe paths that the admin listener serves without a token, on its port', () => {
    const probes = [...deployment.matchAll(/^ +(\w+)Probe:.*\n +httpGet: \{ path: (\S+), port: (\w+)/gm)];
    assert.deepEqual(
      probes.map((probe) => probe.slice(1, 4)),
      [
        ['startup', '/health/live', 'operators'],
        ['liveness', '/health/live', 'operators'],
        ['readiness', '/health/ready', 'operators'],
      ],
    );
    assert.match(deployment, /name: operators, containerPort: \{\{ int \.Values\.config\.admin\.port \}\}/);
    const monitoring = textOf(`${folder}/templates/monitoring.yaml`);
    assert.match(monitoring, /port: operators, path: \/metrics/);
    assert.match(monitoring, /jobLabel: app\.kubernetes\.io\/name # the job is "penstock"/);
  });

  test('run the gateway and the migration without privileges and with a read-only file system', () => {
    for (const text of [deployment, migration]) {
      assert.match(text, /include "penstock\.podBasics"/);
      assert.match(text, /include "penstock\.containerSecurity"/);
    }
    const helpers = textOf(`${folder}/templates/_helpers.tpl`);
    for (const setting of [
      'automountServiceAccountToken: false',
      'runAsNonRoot: true',
      'readOnlyRootFilesystem: true',
      'allowPrivilegeEscalation: false',
      'capabilities: { drop: [ALL] }',
    ])
      assert.ok(helpers.includes(setting), setting);
    const mounts = [...helpers.matchAll(/^- \{ name: .*mountPath: .*\}$/gm)].map(([line]) => line);
    assert.equal(mounts.length, 2);
    for (const mount of mounts) assert.match(mount, /readOnly: true/);
  });

  test('create the tables before the first installation only: an empty database at an upgrade is the wrong one', () => {
    assert.match(migration, /^ +args: \[migrate\]$/m);
    const hooks = [...migration.matchAll(/helm\.sh\/hook: (\S+)/g)].map(([, hook]) => hook);
    assert.deepEqual(hooks, ['pre-install', 'pre-install'], 'the configuration, and the Job');
    assert.doesNotMatch(deployment, /initContainers|migrate/);
    assert.doesNotMatch(migration, /penstock\.selectorLabels/, 'no service sends requests to the Job');
  });

  test('give the gateway and the migration the URLs of PostgreSQL and Redis from Secrets', () => {
    for (const text of [deployment, migration]) assert.match(text, /include "penstock\.env"/);
    const helpers = textOf(`${folder}/templates/_helpers.tpl`);
    assert.deepEqual(
      [...helpers.matchAll(/"PENSTOCK_STATE_(\w+)" "valueFrom" \(dict "secretKeyRef"/g)].map(
        ([, name]) => name,
      ),
      ['POSTGRES', 'REDIS'],
    );
    assert.deepEqual(at(defaults, 'networkPolicy', 'egressPorts'), [443, 5432, 6379]);
  });

  test('select the pods of this release everywhere, by the labels of the pods', () => {
    const own = '{{- include "penstock.selectorLabels" . | nindent';
    for (const file of ['deployment', 'disruption-budget', 'network-policy', 'services']) {
      const text = textOf(`${folder}/templates/${file}.yaml`);
      const selectors = text.split('\n').filter((line) => /^ +(matchLabels|selector): \S/.test(line));
      assert.ok(selectors.length > 0, file);
      for (const selector of selectors) assert.ok(selector.includes(own), `${file}: ${selector}`);
    }
    assert.match(
      textOf(`${folder}/templates/_helpers.tpl`),
      /define "penstock\.labels" -\}\}\n.*penstock\.selectorLabels/,
    );
  });

  test('close every block that they open', () => {
    assert.ok(templates.length > 5);
    for (const { file, text } of templates) {
      const actions = Array.from(text.matchAll(/\{\{-?\s*(\w+)/g), ([, word = '']) => word);
      const opened = actions.filter((word) => ['if', 'with', 'range', 'define'].includes(word));
      assert.equal(opened.length, actions.filter((word) => word === 'end').length, file);
    }
  });

  test('read only files of the chart', () => {
    const read = [...allTemplates.matchAll(/\.Files\.Get "([^"]+)"/g)].map(([, file = '']) => file);
    assert.deepEqual(read.toSorted(), ['files/alerts.yaml', 'files/dashboard.json']);
    for (const file of read) assert.ok(textOf(join(folder, file)).length > 1_000, file);
  });
});
