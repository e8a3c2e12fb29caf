/** deadlines, upstream and circuit: how the bank is called, and when it is left alone. */

import { z } from 'zod';
import { duration, percent } from '../units.ts';
import { count } from '../values.ts';

/** Beyond this, a TPP and whatever stands between have long given up. */
const longest = { max: '10min' };

export const deadlines = z
  .strictObject({
    connect: duration('2s', longest).describe('How long connecting to the bank may take, TLS included.'),
    status: duration('10s', longest).describe(
      'How long a status read may take in all, waiting for its turn included.',
    ),
    read: duration('15s', longest).describe('How long any other read may take in all.'),
    write: duration('35s', longest).describe(
      'How long a payment, cancellation or authorisation may take in all.',
    ),
  })
  .prefault({})
  .describe('How long a call may take.');

export const upstream = z
  .strictObject({
    maxSockets: count(128).describe('How many connections one instance opens to an environment at most.'),
    idle: duration('4s', longest).describe(
      'How long an unused connection is kept; less than the bank keeps it.',
    ),
    writeSocketIdle: duration('1s', { min: '0ms', ...longest }).describe(
      'A payment takes a kept connection only if it was unused for less than this, else a new one.',
    ),
  })
  .prefault({})
  .describe('The connections to the bank, per environment.');

export const circuit = z
  .strictObject({
    failureRate: percent('50%', { min: '1%' }).describe('The part of failed calls that opens the circuit.'),
    minimumCalls: count(10).describe(
      'How many calls there must have been in the window before that part counts.',
    ),
    window: duration('10s', { min: '1s', max: '10min' }).describe('How far back calls are counted.'),
    openFor: duration('10s', { min: '100ms', max: '2min' }).describe(
      'How long the bank is left alone before it is tried again; doubles up to 2min while it fails.',
    ),
  })
  .prefault({})
  .describe('When the gateway stops calling a bank that fails, per environment and lane.');
