/** The routes of the contract guard. */

import { contractComparison, contractReport } from './contract-schemas.ts';
import { compareQuery, contractQuery } from './request-schemas.ts';
import type { Route } from './route.ts';

export const contractRoutes = {
  showContractReport: {
    method: 'get',
    path: '/api/contract',
    role: 'read',
    summary: 'Show the deviations of requests and answers from the standard, of all instances',
    query: contractQuery,
    response: {
      description:
        'At most a thousand deviations: those of the contracts in effect first, then the harmful and the most frequent ones.',
      schema: contractReport,
    },
    errors: { 404: 'Unknown environment.', 503: 'The database is unavailable.' },
  },
  compareContracts: {
    method: 'get',
    path: '/api/contract/compare',
    role: 'read',
    summary: 'Show what another environment would do with the requests of an environment',
    query: compareQuery,
    response: { description: 'The differences, the worst first.', schema: contractComparison },
    errors: { 404: 'Unknown environment.', 503: 'The database is unavailable.' },
  },
} as const satisfies Readonly<Record<string, Route>>;
