/** The operators' page: plain files without any data in them, under a strict content security policy. */

import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { RequestHandler } from 'express';
import helmet from 'helmet';

const types = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
} as const;

const folder = join(import.meta.dirname, 'console');

/** The page at `/`, and its files beside it. They are read now, once: no path of a request ever names a file. */
export function createConsole(): RequestHandler {
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

  const pages = new Map(
    readdirSync(folder).map((file) => {
      const extension = extname(file).slice(1) as keyof typeof types; // of our own files
      const page = { type: types[extension], body: readFileSync(join(folder, file)) };
      return [file === 'index.html' ? '/' : `/${file}`, page];
    }),
  );

  return (request, response, next) => {
    const page = request.method === 'GET' || request.method === 'HEAD' ? pages.get(request.path) : undefined;
    if (!page) return next();
    return shield(request, response, () => {
      response.set('Content-Type', page.type).send(page.body);
    });
  };
}
