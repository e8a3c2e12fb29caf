/** The licences under which others may have written what is loaded here. */

/**
 * SPDX identifiers. All let the work be used and passed on, for money too, if its notice goes along; none asks for the
 * source of what is built on it. A new one is a decision, not a line.
 */
export const allowedLicences = ['0BSD', 'Apache-2.0', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT'] as const;

/** Of single packages that only the tests load, unmodified. Nothing of them is shipped. */
export const allowedInDevelopment: Readonly<Record<string, string>> = {
  argparse: 'PSF-2.0', // permissive; a dependency of @redocly/openapi-core
  'axe-core': 'MPL-2.0',
  'fast-sha256': 'Unlicense', // public domain; a dependency of standardwebhooks
};

const allowed: ReadonlySet<string> = new Set(allowedLicences);

/** Whether an SPDX expression leaves a choice of these alone. `OR` offers one, `AND` asks for all; some write them small. */
export const isAllowed = (expression: string): boolean =>
  expression
    .replace(/[()]/g, '')
    .split(/ or /i)
    .some((choice) => choice.split(/ and /i).every((one) => allowed.has(one)));
