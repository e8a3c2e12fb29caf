/** The operators' page: plain files without any data in them, under a strict content security policy. */

import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import express, { type Router } from 'express';
import helmet from 'helmet';

const types = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
} as const;

const folder = join(import.meta.dirname, 'console');

/** The page at `/`, and its files beside it. They are read now, once: no path of a request ever names a file. */
export function createConsole(): Router {
  const routes = express.Router({ caseSensitive: true, strict: true });
  const shield = helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        'default-src': ["'none'"],
        'script-src': ["'self'"],
        'style-src': ["'self'"],
        'img-src': ["'self'"],
        'connect-src': ["'self'"],
        'base-uri': ["'none'"],
        'form-action': ["'none'"],
        'frame-ancestors': ["'none'"],
        'require-trusted-types-for': ["'script'"],
        'trusted-types': ["'none'"],
      },
    },
    strictTransportSecurity: false, // this listener speaks plain HTTP (RFC 6797 section 7.2)
    xFrameOptions: { action: 'deny' },
  });

  for (const file of readdirSync(folder)) {
    const body = readFileSync(join(folder, file));
    const extension = extname(file).slice(1) as keyof typeof types; // of our own files
    routes.get(file === 'index.html' ? '/' : `/${file}`, shield, (_request, response) => {
      response.set('Content-Type', types[extension]).send(body);
    });
  }
  return routes;
}
