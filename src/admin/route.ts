/** The description of one route of the admin listener. */

import type { z } from 'zod';

export interface Route {
  readonly method: 'get' | 'put' | 'post' | 'delete';
  /** An OpenAPI path template. */
  readonly path: string;
  /** The role that a caller needs; `none` and `guest` need no token, and only `none` accepts every host name. */
  readonly role: 'none' | 'guest' | 'read' | 'operate';
  readonly summary: string;
  /** Schema of the JSON body. */
  readonly body?: z.ZodType;
  readonly query?: z.ZodObject;
  /** What a success returns: JSON of this schema, or another content type, or nothing (204). */
  readonly response: ResponseShape;
  /** Other responses, by status; 400, 401, 403 and 503 of every route are added by the description. */
  readonly errors?: Readonly<Record<number, string>>;
}

type ResponseShape =
  | { readonly description: string; readonly schema: z.ZodType }
  | { readonly description: string; readonly contentType: string | readonly string[] }
  | { readonly description: string; readonly status: 204 | 302 };
