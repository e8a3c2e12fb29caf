/** deadlines, upstream and circuit: how the gateway calls the bank, and when it stops. */

import { z } from 'zod';
import { longestDeadline } from '../setting-orders.ts';
import { duration, percent } from '../units.ts';
import { count } from '../values.ts';

const longest = { max: longestDeadline };
/** Room for a connect timeout below it: 1ms. */
const deadline = { min: '2ms', ...longest };

export const deadlines = z
  .strictObject({
    connect: duration('2s', { max: '599s' }).describe(
      'How long connecting to the bank may take, including TLS.',
    ),
    status: duration('10s', deadline).describe(
      'How long a status read may take in total, including the time in the queue.',
    ),
    read: duration('15s', deadline).describe('How long any other read may take in total.'),
    write: duration('35s', deadline).describe(
      'How long a payment, cancellation or authorisation may take in total.',
    ),
  })
  .prefault({})
  .describe('How long a call may take.');

export const upstream = z
  .strictObject({
    maxSockets: count(128).describe('The maximum number of connections of one instance to an environment.'),
    idle: duration('4s', longest).describe(
      'How long an unused connection is kept open; choose less than the bank does.',
    ),
    writeSocketIdle: duration('1s', { min: '0ms', ...longest }).describe(
      'A payment reuses a connection only if it was unused for less than this.',
    ),
  })
  .prefault({})
  .describe('The connections to the bank, per environment.');

export const circuit = z
  .strictObject({
    failureRate: percent('50%', { min: '1%' }).describe('The part of failed calls that opens the circuit.'),
    minimumCalls: count(10).describe(
      'How many calls the window must contain before the failure rate counts.',
    ),
    window: duration('10s', { min: '1s', max: '10min' }).describe(
      'The time span over which calls are counted.',
    ),
    openFor: duration('10s', { min: '100ms', max: '2min' }).describe(
      'How long the circuit stays open before the gateway tries the bank again; doubles up to 2min while the bank fails.',
    ),
  })
  .prefault({})
  .describe('When the gateway stops calling a failing bank, per environment, lane and tenant.');
