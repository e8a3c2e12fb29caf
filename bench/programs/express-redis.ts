/** Express that reads each response from Redis: the minimum cost of a cached response. Arguments: PORT REDIS-PORT */

import express from 'express';
import { Redis } from 'ioredis';
import { cachedBody } from '../traffic.ts';

const [port, redisPort] = process.argv.slice(2).map(Number);
const redis = new Redis(Number(redisPort), '127.0.0.1');
await redis.set('answer', cachedBody);

express()
  .get('/*path', async (_, response) => {
    response.type('json').send(await redis.getBuffer('answer'));
  })
  .listen(Number(port), '127.0.0.1');
