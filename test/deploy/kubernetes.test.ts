/** deploy/kubernetes agrees with itself and with what the gateway really is. */

import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { root } from '../kit/command.ts';
import { at, configIn, documentsIn, entriesAt, listAt } from './files.ts';

const folder = 'deploy/kubernetes';
const [kustomization] = documentsIn(`${folder}/kustomization.yaml`);
const resources = listAt(kustomization, 'resources').flatMap((file) => documentsIn(`${folder}/${file}`));
const ofKind = (kind: string) => resources.filter((one) => at(one, 'kind') === kind);
const [deployment] = ofKind('Deployment');
const pod = at(deployment, 'spec', 'template', 'spec');
const [container] = listAt(pod, 'containers');
const config = configIn(`${folder}/penstock.yaml`, {
  PENSTOCK_STATE_REDIS: 'rediss://u:p@redis.example:6379/0',
});
const ports = new Map(
  listAt(container, 'ports').map((port) => [at(port, 'name'), at(port, 'containerPort')]),
);
const portOf = (name: unknown) => ports.get(name) ?? name;

describe('the Kubernetes base', () => {
  test('consists of the expected resources, with their kinds and names', () => {
    const found = resources.map(
      (one) => `${at(one, 'apiVersion')} ${at(one, 'kind')} ${at(one, 'metadata', 'name')}`,
    );
    assert.deepEqual(found.toSorted(), [
      'apps/v1 Deployment penstock',
      'autoscaling/v2 HorizontalPodAutoscaler penstock',
      'monitoring.coreos.com/v1 ServiceMonitor penstock',
      'networking.k8s.io/v1 NetworkPolicy penstock',
      'policy/v1 PodDisruptionBudget penstock',
      'v1 Service penstock',
      'v1 Service penstock-operators',
    ]);
  });

  test('uses every file of its folder', () => {
    const used = [
      listAt(kustomization, 'resources'),
      listAt(kustomization, 'configMapGenerator', 0, 'files'),
    ].flat();
    const there = readdirSync(join(root, folder)).filter((file) => file !== 'kustomization.yaml');
    assert.deepEqual(used.toSorted(), there.toSorted());
  });

  test('contains a valid configuration of the gateway', () => {
    assert.equal(config.listen.tls?.certFile, '/etc/penstock/tls/tls.crt');
    assert.equal(
      config.shaping.expectedInstances,
      at(ofKind('HorizontalPodAutoscaler')[0], 'spec', 'maxReplicas'),
    );
  });

  test('exposes the ports that the gateway listens on outside the pod', () => {
    assert.deepEqual(
      [...ports],
      [
        ['https', config.listen.port],
        ['operators', config.admin.port],
      ],
    );
    assert.deepEqual([config.listen.host, config.admin.host], ['0.0.0.0', '0.0.0.0']);
    for (const port of ofKind('Service').flatMap((service) => listAt(service, 'spec', 'ports')))
      assert.ok(ports.has(at(port, 'targetPort')));
    for (const rule of listAt(ofKind('NetworkPolicy')[0], 'spec', 'ingress'))
      for (const port of listAt(rule, 'ports')) assert.ok(ports.has(at(port, 'port')));
  });

  test('probes paths that the admin listener serves without a token', () => {
    const paths = {
      startupProbe: '/health/live',
      livenessProbe: '/health/live',
      readinessProbe: '/health/ready',
    };
    for (const [probe, path] of Object.entries(paths)) {
      assert.equal(at(container, probe, 'httpGet', 'path'), path);
      assert.equal(portOf(at(container, probe, 'httpGet', 'port')), config.admin.port);
    }
    const [monitor] = ofKind('ServiceMonitor');
    const labels = entriesAt(monitor, 'spec', 'selector', 'matchLabels');
    const [watched] = ofKind('Service').filter((service) =>
      labels.every(([name, value]) => at(service, 'metadata', 'labels', name) === value),
    );
    assert.equal(at(watched, 'metadata', 'name'), 'penstock-operators');
    assert.equal(at(monitor, 'spec', 'endpoints', 0, 'port'), at(watched, 'spec', 'ports', 0, 'name'));
    assert.equal(at(monitor, 'spec', 'endpoints', 0, 'path'), '/metrics');
    const job = at(watched, 'metadata', 'labels', String(at(monitor, 'spec', 'jobLabel')));
    assert.equal(job, 'penstock', 'the job that the alert rules name');
  });

  test('selects its own pods everywhere', () => {
    const labels = at(deployment, 'spec', 'template', 'metadata', 'labels');
    const selectors = [
      at(deployment, 'spec', 'selector', 'matchLabels'),
      ...ofKind('Service').map((service) => at(service, 'spec', 'selector')),
      at(ofKind('PodDisruptionBudget')[0], 'spec', 'selector', 'matchLabels'),
      at(ofKind('NetworkPolicy')[0], 'spec', 'podSelector', 'matchLabels'),
      at(pod, 'topologySpreadConstraints', 0, 'labelSelector', 'matchLabels'),
    ];
    for (const selector of selectors) assert.deepEqual(selector, labels);
    assert.equal(at(ofKind('HorizontalPodAutoscaler')[0], 'spec', 'scaleTargetRef', 'kind'), 'Deployment');
  });

  test('gives a pod more time to stop than the gateway needs at most', () => {
    const { status, read, write } = config.deadlines;
    const longestMs = 1_000 + Math.max(status, read, write) + 5_000;
    const sleepMs = Number(at(container, 'lifecycle', 'preStop', 'sleep', 'seconds')) * 1_000;
    assert.ok(Number(at(pod, 'terminationGracePeriodSeconds')) * 1_000 > longestMs + sleepMs);
  });

  test('mounts a volume for every file that the configuration names', () => {
    const volumes = listAt(pod, 'volumes').map((volume) => at(volume, 'name'));
    const mounts = listAt(container, 'volumeMounts');
    assert.deepEqual(
      mounts.map((mount) => at(mount, 'name')),
      volumes,
    );
    const { listen, admin, environments } = config;
    assert.equal(admin.tokenFile, null, 'each operator has a token of their own');
    assert.ok(admin.operators.length > 1);
    const files = [listen.tls?.certFile, listen.tls?.keyFile].concat(
      environments.all.flatMap(({ tls }) => [tls?.certFile, tls?.keyFile]),
    );
    for (const file of ['/etc/penstock/penstock.yaml', ...files])
      assert.ok(
        mounts.some((mount) => String(file).startsWith(String(at(mount, 'mountPath')))),
        String(file),
      );
    assert.ok(mounts.every((mount) => at(mount, 'readOnly') === true));
  });

  test('runs the process without privileges and with a read-only file system', () => {
    assert.equal(at(pod, 'securityContext', 'runAsNonRoot'), true);
    assert.equal(at(pod, 'automountServiceAccountToken'), false);
    assert.deepEqual(at(container, 'securityContext'), {
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
    });
  });
});
