/**
 * deploy/helm/penstock: the schema of the values, and copies of the files that a chart must contain.
 *
 * The configuration of the gateway is one of the values, so the schema contains the schema of the configuration: Helm refuses
 * an unknown setting before anything is installed.
 */

import { readFileSync } from 'node:fs';
import { type JsonSchema, jsonSchema } from '../../src/config/settings.ts';

/** The part of JSON Schema that the values need in addition to that of the settings. */
type ValuesSchema = Omit<JsonSchema, 'properties' | 'items'> & {
  readonly properties?: Readonly<Record<string, ValuesSchema>>;
  readonly items?: ValuesSchema;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly minItems?: number;
};

const text = (description: string): ValuesSchema => ({ type: 'string', description });
const number = (description: string, minimum: number, maximum: number): ValuesSchema => ({
  type: 'integer',
  minimum,
  maximum,
  description,
});
const flag = (description: string): ValuesSchema => ({ type: 'boolean', description });
const name = (description: string): ValuesSchema => ({ type: 'string', minLength: 1, description });
const list = (items: ValuesSchema, description: string): ValuesSchema => ({
  type: 'array',
  items,
  description,
});
const peers = (description: string): ValuesSchema => ({
  ...list({ type: 'object' }, description),
  minItems: 1,
});
const texts = (description: string): ValuesSchema => ({
  type: 'object',
  additionalProperties: { type: 'string' },
  description,
});
const anyMapping = (description: string): ValuesSchema => ({ type: 'object', description });
const mapping = (
  description: string,
  properties: Readonly<Record<string, ValuesSchema>>,
  required: readonly string[] = [],
): ValuesSchema => ({ type: 'object', description, properties, required, additionalProperties: false });

const resource = (description: string, more: Readonly<Record<string, ValuesSchema>> = {}) =>
  mapping(description, {
    enabled: flag('Whether the chart creates it.'),
    labels: texts('Labels by which it is found.'),
    ...more,
  });

const secretWithUrl = (server: string) =>
  mapping(`The Secret with the URL of ${server}.`, {
    secretName: text('Its name; empty for none.'),
    key: name('The key in it.'),
  });

const values: Readonly<Record<string, ValuesSchema>> = {
  global: anyMapping('Values of a parent chart; not used.'),
  image: mapping('The container image.', {
    repository: name('Registry and name.'),
    tag: text("The tag; the chart's appVersion if it is empty."),
    digest: { ...text('The digest, used instead of the tag.'), pattern: '^(sha256:[0-9a-f]{64})?$' },
    pullPolicy: { ...text('When nodes pull it.'), enum: ['Always', 'IfNotPresent', 'Never'] },
    pullSecrets: list(name('A Secret.'), 'The Secrets for the registry.'),
  }),
  postgres: secretWithUrl('PostgreSQL'),
  migration: mapping('The Job that creates the tables before the first installation.', {
    enabled: flag('Whether the chart runs it.'),
    timeoutSeconds: number('How long it may take, with repeated attempts.', 1, 3_600),
  }),
  redis: secretWithUrl('Redis'),
  env: list(anyMapping('An entry of `env` of a container.'), 'More environment variables.'),
  secretMounts: list(
    mapping(
      'A Secret and its folder.',
      {
        secretName: name('The Secret.'),
        mountPath: { ...text('The folder, below /etc/penstock.'), pattern: '^/etc/penstock/[^/]+$' },
      },
      ['secretName', 'mountPath'],
    ),
    'Secrets with certificates and keys.',
  ),
  service: mapping('The Service for TPP systems.', {
    type: { ...text('Its type.'), enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] },
    port: number('Its port.', 1, 65_535),
    annotations: texts('Its annotations.'),
  }),
  autoscaling: mapping('The HorizontalPodAutoscaler.', {
    minReplicas: number('The fewest pods.', 1, 1_000),
    maxReplicas: number('The most pods; also the default of shaping.expectedInstances.', 1, 1_000),
    targetCpu: number('The utilization that it aims at, in percent.', 1, 100),
  }),
  podDisruptionBudget: mapping('The PodDisruptionBudget.', {
    maxUnavailable: number('How many pods may be evicted at the same time.', 1, 1_000),
  }),
  resources: anyMapping('Requests and limits of the container.'),
  preStopSeconds: number('How long a pod waits before SIGTERM, so that load balancers notice.', 0, 300),
  terminationGracePeriodSeconds: number('How long a pod may take to stop.', 1, 3_600),
  networkPolicy: mapping('The NetworkPolicy.', {
    enabled: flag('Whether the chart creates it.'),
    tppSystems: peers('The peers that may call the gateway.'),
    operators: peers('The peers that may reach the console, the admin API and the metrics.'),
    egressPorts: list(
      number('A port.', 1, 65_535),
      'The TCP ports of the bank, of PostgreSQL, of Redis and of other services.',
    ),
  }),
  monitoring: mapping('Resources for Prometheus and Grafana.', {
    serviceMonitor: resource('The ServiceMonitor.', {
      interval: text('How often Prometheus scrapes, such as 15s.'),
      tlsConfig: anyMapping('How Prometheus verifies the admin listener, if config.admin.tls is set.'),
    }),
    prometheusRule: resource('The PrometheusRule with the alerts.', {
      runbookUrl: name('The address of the pages that the alerts link to (docs/ of the repository).'),
    }),
    dashboards: resource('The ConfigMap with the dashboard.'),
  }),
  podAnnotations: texts('Annotations of the pods.'),
  nodeSelector: texts('Labels of the nodes for the pods.'),
  tolerations: list(anyMapping('A toleration.'), 'Taints that the pods tolerate.'),
};

/** deploy/helm/penstock/values.schema.json */
export const chartValuesSchema = (): string =>
  `${JSON.stringify(
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      title: 'Values of the Penstock chart',
      $comment: 'Generated by `npm run docs` from scripts/docs/helm.ts.',
      type: 'object',
      properties: { ...values, config: configSchema() },
      required: ['image', 'config'],
      additionalProperties: false,
    },
    null,
    2,
  )}\n`;

/** The schema of the configuration; one environment is required, as the gateway does not start without. */
function configSchema(): unknown {
  const {
    $schema: _,
    properties,
    ...rest
  } = withoutLookahead(jsonSchema) as JsonSchema & { $schema?: string };
  const { environments, ...others } = properties ?? {};
  return {
    ...rest,
    description: 'The configuration of the gateway: docs/configuration.md.',
    properties: { ...others, environments: { ...environments, minProperties: 1 } },
    required: ['environments'],
  };
}

/** `(?=.{1,64}$)` at the beginning of a pattern becomes `maxLength`: the regular expressions of Helm have no lookahead. */
function withoutLookahead(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withoutLookahead);
  if (!(node instanceof Object)) return node;
  const entries = Object.entries(node).flatMap(([key, value]): (readonly [string, unknown])[] => {
    const [, length, rest] = (key === 'pattern' && /^\^\(\?=\.\{1,(\d+)\}\$\)(.*)$/.exec(value)) || [];
    if (rest === undefined) return [[key, withoutLookahead(value)]];
    return [
      ['pattern', `^${rest}`],
      ['maxLength', Number(length)],
    ];
  });
  return Object.fromEntries(entries);
}

/** deploy/helm/penstock/files/dashboard.json */
export const chartDashboard = (): string => deployed('grafana/penstock.json');

const deployed = (file: string) => readFileSync(new URL(`../../deploy/${file}`, import.meta.url), 'utf8');
