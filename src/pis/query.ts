/** The query of a request: its characters, the parameters that a bank accepts, and parameters that the gateway adds. */

/** A parameter of a query, decoded. */
export type QueryParameter = readonly [name: string, value: string];

/** Without the "?". */
const maxQueryBytes = 1_024;

/** RFC 3986 section 3.4. */
const queryCharacters = /^\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*$/;

/** Why a text cannot be the query of a request, without quoting it; `undefined` if it can. @param search begins with "?" */
export function querySyntaxProblem(search: string): string | undefined {
  if (search.length > maxQueryBytes + 1) return 'the query is longer than 1,024 bytes';
  return queryCharacters.test(search)
    ? undefined
    : 'the query contains a character that must be percent-encoded (RFC 3986), or a "%" without two hex digits';
}

/**
 * Why a bank does not accept this query, without quoting it; `undefined` if it does.
 *
 * @param search          empty, or a query that begins with "?"
 * @param queryParameters the names that the bank accepts
 */
export function queryProblem(search: string, queryParameters: 'any' | readonly string[]): string | undefined {
  if (queryParameters === 'any' || search === '') return undefined;
  const isAccepted = partsOf(search).every(
    ({ text }) => text === '' || queryParameters.includes(nameAndValue(text)[0]),
  );
  if (isAccepted) return undefined;
  return queryParameters.length === 0
    ? 'this environment accepts no query parameters; remove all of them'
    : `this environment accepts only the query parameters ${queryParameters.join(', ')}; remove all others`;
}

/**
 * Adds parameters to a path and its query, in place of those with the same names. The rest of the query keeps its bytes, and so
 * does a parameter that already has the name and value.
 *
 * @param target a path, with or without a query
 */
export function withQueryParameters(target: string, parameters: readonly QueryParameter[]): string {
  if (parameters.length === 0) return target;
  const end = target.indexOf('?');
  const search = end < 0 ? '' : target.slice(end);
  const missing = new Set(parameters);
  const isKept = ({ separator, text }: QueryPart) => {
    const replacing = parameters.filter(([name]) => mayBeReadAs(text, name));
    if (replacing.length === 0) return true;
    if (separator === ';') return false; // a server that splits only at "&" does not find it
    const [name, value] = nameAndValue(text);
    const same = replacing.find((parameter) => parameter[0] === name && parameter[1] === value);
    return same !== undefined && missing.delete(same);
  };
  const kept = partsOf(search).filter(isKept);
  const added = Array.from(missing, ([name, value]) => ({
    separator: '&',
    text: `${encodeURIComponent(name)}=${encodeURIComponent(value)}`,
  }));
  const hasOnlyAdded = added.length > 0 && kept.every(({ text }) => text === '');
  const parts = hasOnlyAdded ? added : [...kept, ...added];
  const query = parts.map(({ separator, text }, index) => (index === 0 ? text : separator + text)).join('');
  const path = end < 0 ? target : target.slice(0, end);
  return parts.length === 0 ? path : `${path}?${query}`;
}

interface QueryPart {
  /** The character before it. */
  readonly separator: string;
  /** As it was sent. */
  readonly text: string;
}

/** Servers separate parameters at `&`, and some of them at `;` too. */
function partsOf(search: string): readonly QueryPart[] {
  const pieces = `&${search.slice(1)}`.split(/([&;])/).slice(1); // separator, text, separator, text
  return pieces.flatMap((separator, at) => (at % 2 === 0 ? [{ separator, text: pieces[at + 1] ?? '' }] : []));
}

/** Some servers ignore case in names, others decode + as a space. Both must find only the gateway's parameter. */
function mayBeReadAs(part: string, wanted: string): boolean {
  const [name] = nameAndValue(part);
  const same = wanted.toLowerCase();
  return name.toLowerCase() === same || decode(rawName(part).replaceAll('+', ' ')).toLowerCase() === same;
}

function nameAndValue(part: string): QueryParameter {
  const name = rawName(part);
  return [decode(name), decode(part.slice(name.length + 1))];
}

const rawName = (part: string) => part.split('=', 1)[0] ?? '';

/** Bytes that are not UTF-8 become replacement characters: `decodeURIComponent` would throw. */
const decode = (text: string): string =>
  text.includes('%')
    ? Buffer.from(
        Buffer.from(text)
          .toString('latin1')
          .replaceAll(/%([0-9A-Fa-f]{2})/g, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16))),
        'latin1',
      ).toString()
    : text;
