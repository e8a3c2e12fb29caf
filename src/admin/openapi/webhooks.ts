/** Describes the webhooks that the gateway sends, for the OpenAPI description. */

import { ref } from './payment-paths.ts';

const header = (name: string, description: string, schema: object = { type: 'string' }) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema,
});

export const webhooks = {
  paymentStatus: {
    post: {
      operationId: 'receivePaymentStatus',
      tags: ['payments'],
      summary: 'The status of a payment, or of an authorisation of it, has changed',
      description:
        'The gateway sends this to the URL of `TPP-Notification-URI`, at least once: a repeat has the same `webhook-id`. Verify the signature ' +
        'before you use the body: docs/callers/webhooks.md.',
      security: [],
      parameters: [
        header('X-Request-ID', 'The same as `webhook-id`.', { type: 'string', format: 'uuid' }),
        header('webhook-id', 'The id of the message; ignore one that you have processed.'),
        header('webhook-timestamp', 'The time of this attempt, in seconds since 1970.', { type: 'integer' }),
        header(
          'webhook-signature',
          'One or two signatures, separated by a space: `v1,` and the base64 of the HMAC-SHA256 over ' +
            '`webhook-id.webhook-timestamp.body` with the secret of your client (Standard Webhooks).',
        ),
      ],
      requestBody: {
        required: true,
        content: { 'application/json': { schema: ref('schemas', 'StatusMessage') } },
      },
      responses: {
        '2XX': { description: 'You have stored the message.' },
        410: { description: 'Ends the subscription.' },
        default: { description: 'The gateway sends the message again, for `notifications.retryFor`.' },
      },
    },
  },
};

export const webhookSchemas = {
  StatusMessage: {
    type: 'object',
    required: ['paymentId', 'transactionStatus', 'final', 'sequence', '_links'],
    properties: {
      paymentId: { type: 'string' },
      transactionStatus: { type: 'string', example: 'ACSC' },
      final: { type: 'boolean', description: 'Whether it is the last message: none follows.' },
      sequence: {
        type: 'integer',
        description: 'Grows with each message of the payment. Ignore one that is lower than the last one.',
      },
      authorisationId: {
        type: 'string',
        description: 'With `scaStatus`: the authorisation whose status has changed, for `status=SCA`.',
      },
      scaStatus: { type: 'string', example: 'finalised' },
      _links: {
        type: 'object',
        required: ['status'],
        properties: {
          status: {
            type: 'object',
            required: ['href'],
            properties: { href: { type: 'string', format: 'uri' } },
            description: 'Where to read the status, at the gateway.',
          },
        },
      },
    },
  },
};
