/** log and tracing. */

import { z } from 'zod';
import { percent } from '../units.ts';
import { webAddress } from '../values.ts';

export const log = z
  .strictObject({
    level: z
      .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
      .default('info')
      .describe('The lowest level that is logged.'),
    format: z
      .enum(['json', 'text'])
      .default('json')
      .describe('JSON for programs, or text for people. Unless set, the log is text on a terminal.'),
  })
  .prefault({})
  .describe('The log, on standard output.');

export const tracing = z
  .strictObject({
    otlpUrl: webAddress()
      .nullable()
      .prefault(null)
      .describe(
        'Where spans are sent by OTLP over HTTP, such as `http://collector:4318/v1/traces`; null turns tracing off.',
      ),
    sample: percent('10%').describe('The part of requests that is traced, unless the caller decides.'),
  })
  .prefault({})
  .describe('Traces by OpenTelemetry.');
