/** requests, log and tracing. */

import { z } from 'zod';
import { duration, percent, size } from '../units.ts';
import { flag, webAddress } from '../values.ts';

export const requests = z
  .strictObject({
    keepFor: duration('24h', { min: '10min', max: '7d' }).describe(
      'The retention of the records of requests and of the figures of each minute, for the search and the console.',
    ),
    maxStoredPerTenant: size('2GiB', { min: '1MiB' }).describe(
      'The maximum amount of data stored for the records of one tenant, evenly distributed over keepFor. Of further requests, no record is stored: polls first, then reads, then payments.',
    ),
    selfService: flag(false).describe(
      'Whether TPPs can look up their own requests on the public listener: `GET /requests/{X-Request-ID}`.',
    ),
  })
  .prefault({})
  .describe('The records of requests: when, by whom, with which result; without any content.');

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
