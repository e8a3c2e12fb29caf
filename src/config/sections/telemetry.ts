/** log and tracing. */

import { z } from 'zod';
import { percent } from '../units.ts';
import { webAddress } from '../values.ts';

export const log = z
  .strictObject({
    level: z
      .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
      .default('info')
      .describe('The minimum level of logged messages.'),
    format: z
      .enum(['json', 'text'])
      .default('json')
      .describe(
        'The format of log lines: JSON for log processors, or text for people. Unless set, the log is text on a terminal.',
      ),
  })
  .prefault({})
  .describe('The log on standard output.');

export const tracing = z
  .strictObject({
    otlpUrl: webAddress()
      .nullable()
      .prefault(null)
      .describe(
        'The URL that spans are sent to (OTLP over HTTP), such as `http://collector:4318/v1/traces`; null disables tracing.',
      ),
    sample: percent('10%').describe(
      'The proportion of requests that are traced, unless the caller has decided (traceparent).',
    ),
  })
  .prefault({})
  .describe('OpenTelemetry tracing.');
