/** Error bodies in the two formats of the standard, and which of them a TPP prefers. */

/** What an error body says. */
export interface TppError {
  /** Our own code, such as `PATH_MALFORMED`. */
  readonly code: string;
  /** The standard's message code, such as `FORMAT_ERROR`. */
  readonly tppCode: string;
  /** What happened and what to do next; cut off after 500 characters. */
  readonly text: string;
  /** The header or field at fault, if it is one. */
  readonly field?: string | undefined;
}

/** The body of an error answer, with its `Content-Type`. */
export interface ErrorBody {
  readonly contentType: 'application/json' | 'application/problem+json';
  readonly body: string;
}

/**
 * An error in the format that `Accept` asks for: `tppMessages`, unless problem+json is preferred.
 *
 * Source: `tppMessages` and `Error400_NG_PIS` of the OpenAPI files 1.3.6 and 1.3.11; RFC 9457 section 3.
 */
export function errorBody(error: TppError, accept: string | undefined): ErrorBody {
  if (prefersProblem(accept)) {
    return { contentType: 'application/problem+json', body: JSON.stringify(problem(error)) };
  }
  return { contentType: 'application/json', body: JSON.stringify(tppMessages(error)) };
}

/**
 * Does `Accept` rank application/problem+json strictly above application/json?
 *
 * The most specific range that names a type decides about it (RFC 9110 section 12.5.1). Parameters of a
 * range are not looked at: neither format has any, and `charset=utf-8` means nothing to JSON (RFC 8259
 * section 11). A malformed field says nothing, so the default holds.
 */
export function prefersProblem(accept: string | undefined): boolean {
  const ranges = mediaRanges(accept ?? '');
  return qualityOf('application/problem+json', ranges) > qualityOf('application/json', ranges);
}

function tppMessages({ tppCode, field, text }: TppError) {
  const path = field === undefined ? {} : { path: field };
  return { tppMessages: [{ category: 'ERROR', code: tppCode, ...path, text: truncate(500, text) }] };
}

function problem({ code, tppCode, text }: TppError) {
  const title = `${code.charAt(0)}${code.slice(1).toLowerCase().replaceAll('_', ' ')}`;
  return {
    type: truncate(70, `urn:penstock:error:${code}`),
    title: truncate(70, title),
    detail: truncate(500, text),
    code: tppCode,
  };
}

/** Cuts by characters, never through one. */
function truncate(limit: number, text: string): string {
  const characters = Array.from(text);
  return characters.length <= limit ? text : `${characters.slice(0, limit - 1).join('')}…`;
}

interface MediaRange {
  /** In lower case, such as `application/*`. */
  readonly type: string;
  /** The weight: 0 (never) to 1. */
  readonly quality: number;
}

const token = "[\\w!#$%&'*+.^`|~-]+";
const quoted = '"(?:[^"\\\\]|\\\\.)*"';
const parameter = `[ \\t]*;[ \\t]*${token}=(?:${token}|${quoted})`;
const quotedStrings = new RegExp(quoted, 'g');
const weight = /;[ \t]*q=([^; \t]*)/i;
const qvalue = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/** The ranges of an Accept field; none if any of them is malformed. */
function mediaRanges(accept: string): readonly MediaRange[] {
  const range = new RegExp(`[, \\t]*(${token}/${token})((?:${parameter})*)[, \\t]*(?=,|$)`, 'y');
  const ranges: MediaRange[] = [];
  while (range.lastIndex < accept.length) {
    const [, type, parameters = ''] = range.exec(accept) ?? [];
    const quality = weight.exec(parameters.replaceAll(quotedStrings, ''))?.[1] ?? '1';
    if (type === undefined || !qvalue.test(quality)) return [];
    ranges.push({ type: type.toLowerCase(), quality: Number(quality) });
  }
  return ranges;
}

function qualityOf(type: string, ranges: readonly MediaRange[]): number {
  const bySpecificity = [type, 'application/*', '*/*'].map((named) =>
    ranges.filter((range) => range.type === named).map((range) => range.quality),
  );
  const named = bySpecificity.find((qualities) => qualities.length > 0);
  return named === undefined ? 0 : Math.max(...named);
}
