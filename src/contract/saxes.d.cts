/**
 * The members of saxes that `read-xml.ts` and `read-content.ts` use. Its own types do not compile with `exactOptionalPropertyTypes`; tsconfig.json
 * maps the name to this file.
 */

interface Events {
  readonly error: (error: Error) => void;
  readonly doctype: () => void;
  readonly opentag: (tag: Tag) => void;
  readonly text: (text: string) => void;
  readonly cdata: (text: string) => void;
  readonly closetag: (tag: Tag) => void;
}

interface Tag {
  /** With its prefix. */
  readonly name: string;
  /** Without its prefix. Only with `xmlns`. */
  readonly local: string;
  /** The namespace; empty if there is none. Only with `xmlns`. */
  readonly uri: string;
  /** By their names with prefix. */
  readonly attributes: Readonly<Record<string, { readonly value: string }>>;
}

export declare class SaxesParser {
  constructor(options: { readonly xmlns: boolean; readonly position: boolean });
  on<Name extends keyof Events>(name: Name, handler: Events[Name]): void;
  write(text: string): this;
  close(): this;
}
