/** Express that asks Redis for each answer: what a cached answer costs at least. Arguments: PORT REDIS-PORT */

import express from 'express';
import { Redis } from 'ioredis';
import { answer } from '../traffic.ts';

const [port, redisPort] = process.argv.slice(2).map(Number);
const redis = new Redis(Number(redisPort), '127.0.0.1');
await redis.set('answer', answer);

express()
  .get('/*path', async (_, response) => {
    response.type('json').send(await redis.getBuffer('answer'));
  })
  .listen(Number(port), '127.0.0.1');
