/** deadlines, upstream and circuit: limits of calls to the bank. */

import { z } from 'zod';
import { longestDeadline } from '../setting-orders.ts';
import { duration, percent } from '../units.ts';
import { count, file, overriding } from '../values.ts';

const longest = { max: longestDeadline };
/** Room for a connect timeout below it: 1ms. */
const deadline = { min: '2ms', ...longest };

const limits = {
  connect: duration('2s', { max: '599s' }).describe(
    'The maximum time to connect to the bank, including the TLS handshake.',
  ),
  status: duration('10s', deadline).describe(
    'The maximum duration of a status read, including the time in the queue.',
  ),
  read: duration('15s', deadline).describe('The maximum duration of any other read.'),
  write: duration('35s', deadline).describe(
    'The maximum duration of a payment initiation, a cancellation or the start of an authorisation.',
  ),
};

export const deadlines = z.strictObject(limits).prefault({}).describe('The maximum duration of a request.');

/** The same settings in an environment; those that are left out are as in the global section. */
export const deadlineOverrides = z.strictObject({
  connect: overriding(limits.connect, 'deadlines'),
  status: overriding(limits.status, 'deadlines'),
  read: overriding(limits.read, 'deadlines'),
  write: overriding(limits.write, 'deadlines'),
});

const proxyExpected =
  'expected the URL of a proxy, such as http://proxy.internal.example:3128, or environment';

const proxyAddress = () =>
  z.string({ error: proxyExpected }).superRefine((text, context) => {
    if (text === 'environment') return;
    const url = URL.parse(text);
    const message =
      url?.username || url?.password
        ? 'credentials are not allowed in the URL; write user:password into a file, and name that file in upstream.proxyCredentialsFile'
        : proxyExpected;
    if (
      url &&
      /^https?:$/.test(url.protocol) &&
      url.pathname === '/' &&
      !url.search &&
      message === proxyExpected
    )
      return;
    context.addIssue({ code: 'custom', message });
  });

export const upstream = z
  .strictObject({
    maxSockets: count(128).describe('The maximum number of connections of one instance to an environment.'),
    idle: duration('4s', longest).describe(
      'The time after which an idle connection is closed; it should be shorter than the idle timeout of the bank.',
    ),
    writeSocketIdle: duration('1s', { min: '0ms', ...longest }).describe(
      'A payment reuses a connection only if it was idle for less than this time.',
    ),
    maxAge: duration('5min', { min: '1s', max: '24h' }).describe(
      'The time after which a connection is not used for another call, so that calls follow a change in the DNS.',
    ),
    proxy: proxyAddress()
      .nullable()
      .prefault(null)
      .describe(
        'The HTTP proxy through which the gateway connects to the bank (CONNECT): a URL, or `environment` for the variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY. Webhooks do not use it.',
      ),
    proxyCredentialsFile: file()
      .nullable()
      .default(null)
      .describe('A file with the user and password for the proxy, as user:password.'),
  })
  .prefault({})
  .describe('The connections to the bank, per environment.');

export const circuit = z
  .strictObject({
    failureRate: percent('50%', { min: '1%' }).describe(
      'The proportion of failed calls that opens the circuit.',
    ),
    minimumCalls: count(10).describe(
      'The minimum number of calls in the window; with fewer calls, the circuit does not open.',
    ),
    window: duration('10s', { min: '1s', max: '10min' }).describe(
      'The sliding window in which calls are counted.',
    ),
    openFor: duration('10s', { min: '100ms', max: '2min' }).describe(
      'The time that the circuit stays open before the gateway probes the bank; it doubles up to 2min while the bank fails.',
    ),
  })
  .prefault({})
  .describe('The circuit breaker, per environment, lane and tenant.');
