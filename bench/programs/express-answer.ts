/** Express, as installed, that responds from memory: the minimum cost of a response with Express. Arguments: PORT */

import express from 'express';
import { cachedBody } from '../traffic.ts';

express()
  .get('/*path', (_, response) => {
    response.type('json').send(cachedBody);
  })
  .listen(Number(process.argv[2]), '127.0.0.1');
