/** The OpenAPI description of both listeners: the eight operations and the look-up of the public API, and the admin API. */

import { stringify } from 'yaml';
import { adminComponents, adminPaths } from './admin-paths.ts';
import { lookUpPath } from './look-up-path.ts';
import { paymentComponents, paymentPaths } from './payment-paths.ts';
import { webhookSchemas, webhooks } from './webhooks.ts';

let yaml: string | undefined;

/**
 * The description as YAML, the same for every installation. Created at the first call: that takes about 0.1 s, which every
 * command and every start of the gateway would otherwise spend.
 */
export function openapiYaml(): string {
  yaml ??= stringify(describeApi(), { aliasDuplicateObjects: false, lineWidth: 110 });
  return yaml;
}

const gateway = { default: 'http://127.0.0.1:8080', description: 'listen.publicUrl' };

export function describeApi() {
  const { securitySchemes, ...components } = paymentComponents;
  return {
    openapi: '3.1.0',
    info: {
      title: 'Penstock',
      version: '1',
      summary: 'The gateway between a TPP platform and a bank’s PSD2 payment-initiation API.',
      description:
        'The payment side is the payment initiation service of NextGenPSD2 XS2A 1.3.6 and 1.3.11 (The Berlin Group). ' +
        'The standard describes the bodies; this document describes what the gateway adds.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [
      {
        url: '{gateway}/{segment}/v1',
        variables: { gateway, segment: { default: 'berlingroup', description: 'standard.segment' } },
      },
    ],
    tags: [
      { name: 'payments', description: 'For TPP systems.' },
      { name: 'requests', description: 'For developers of TPP systems, if the operators allow it.' },
      { name: 'operators', description: 'For operators, on the admin listener.' },
    ],
    paths: {
      ...paymentPaths(),
      ...lookUpPath([{ url: '{gateway}', variables: { gateway } }]),
      ...adminPaths(),
    },
    webhooks,
    components: {
      ...components,
      schemas: { ...components.schemas, ...webhookSchemas },
      securitySchemes: { ...securitySchemes, ...adminComponents.securitySchemes },
    },
  };
}
