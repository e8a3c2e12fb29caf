/** Contradictions about the shared state. */

import { redisUrl } from '../sections/state.ts';
import type { CrossCheck } from './contradiction.ts';

export const twoStates: CrossCheck = ({ state }) => {
  if (state.redis === null || state.file === null) return [];
  const message = 'the state is kept in Redis or in a file, not in both; remove state.file or state.redis';
  return [{ path: ['state', 'file'], against: [['state', 'redis']], message }];
};

export const portWithoutRedis: CrossCheck = ({ listen, state }) => {
  if (!listen.reusePort || state.redis !== null) return [];
  const message =
    'processes that share a port must share their state, or a payment could be made twice; set state.redis';
  return [{ path: ['listen', 'reusePort'], against: [['state', 'redis']], message }];
};

export const instancesWithoutRedis: CrossCheck = ({ shaping, state }) => {
  if (shaping.expectedInstances === 1 || state.redis !== null) return [];
  const message =
    'several instances must share their state, or a payment could be made twice; set state.redis';
  return [{ path: ['shaping', 'expectedInstances'], against: [['state', 'redis']], message }];
};

export const passwordInFile: CrossCheck = ({ state }, { isFromVariable }) => {
  const path = ['state', 'redis'];
  if (state.redis === null || isFromVariable(path)) return [];
  const urls = state.redis.kind === 'single' ? [state.redis.url] : state.redis.urls;
  if (!urls.map(redisUrl).some((url) => url?.username || url?.password)) return [];
  const message = 'credentials do not belong into this file; give the whole address as PENSTOCK_STATE_REDIS';
  return [{ path, against: [], message }];
};
