/** Serves the console: static files without any data in them, under a strict content security policy. */

import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RequestHandler } from 'express';
import helmet from 'helmet';

const contentTypes: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
]);

const folder = join(import.meta.dirname, 'console');

/** The chart library comes from its npm package, under names of our own. */
const chartLibrary: ReadonlyMap<string, string> = new Map([
  ['/uplot.js', fileURLToPath(import.meta.resolve('uplot/dist/uPlot.esm.js'))],
  ['/uplot.css', fileURLToPath(import.meta.resolve('uplot/dist/uPlot.min.css'))],
]);

/** Serves the page at `/`, those of payments, and their files. Reads all of them once, now: no request path ever names a file. */
export function serveConsole(): RequestHandler {
  const setSecurityHeaders = helmet({
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
    strictTransportSecurity: false, // it would apply to all ports of the host, also to those without TLS (RFC 6797 section 8.3)
    xFrameOptions: { action: 'deny' },
  });
  const files = readFiles();

  return (request, response, next) => {
    const file =
      request.method === 'GET' || request.method === 'HEAD' ? files.get(fileOf(request.path)) : undefined;
    if (!file) return next();
    return setSecurityHeaders(request, response, () => {
      response.set('Content-Type', file.contentType).send(file.body);
    });
  };
}

/** The page of a payment finds its id in the address. */
const fileOf = (path: string): string =>
  /^\/payments(?:\/[^/]+\/[^/]+)?$/.test(path) ? '/payments.html' : path;

/** @returns the files by request path */
function readFiles() {
  const own = readdirSync(folder).map((name): [string, string] => [
    name === 'index.html' ? '/' : `/${name}`,
    join(folder, name),
  ]);
  return new Map(
    [...own, ...chartLibrary].map(([path, file]) => {
      const contentType = contentTypes.get(extname(file));
      if (contentType === undefined) throw new Error(`no content type is known for ${file}`);
      return [path, { contentType, body: readFileSync(file) }];
    }),
  );
}
