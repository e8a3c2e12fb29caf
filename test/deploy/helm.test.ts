/** deploy/helm/penstock: the values fit their schema, and the templates fit the values and the Kustomize base. */

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
    loadConfig(file, { PENSTOCK_STATE_REDIS: 'rediss://user:password@redis.example:6379/0' }),
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

  test('create the kinds of the Kustomize base, the alerts and the dashboard', () => {
    const kindsIn = (text: string) => [...text.matchAll(/^kind: (\w+)$/gm)].map(([, kind = '']) => kind);
    const base = globSync('deploy/kubernetes/!(kustomization|penstock).yaml', { cwd: root }).map(textOf);
    const expected = [...base.flatMap(kindsIn), 'ConfigMap', 'ConfigMap', 'PrometheusRule'];
    assert.deepEqual(kindsIn(allTemplates).toSorted(), expected.toSorted());
  });

  test('start, probe, stop and restrict the container like the Kustomize base', () => {
    const settingsOf = (file: string) => {
      const text = textOf(file)
        .replaceAll(/ #.*$/gm, '')
        .replaceAll('{{ include "penstock.adminScheme" . }}', '');
      const part = (start: string, end: string) => text.slice(text.indexOf(start), text.indexOf(end));
      return [
        part('startupProbe:', 'lifecycle:'),
        part('            readOnlyRootFilesystem', 'volumeMounts:'),
      ];
    };
    const [probes = '', privileges = ''] = settingsOf(`${folder}/templates/deployment.yaml`);
    assert.match(probes, /readinessProbe/);
    assert.match(privileges, /drop: \[ALL\]/);
    assert.deepEqual([probes, privileges], settingsOf('deploy/kubernetes/deployment.yaml'));
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
