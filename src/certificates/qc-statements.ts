/** What a qualified certificate states: its kind, and what a PSP may do (ETSI EN 319 412-5, ETSI TS 119 495 section 5.1). */

import { type DerValue, parseObjectId, parseSequence, parseText, parseValues } from './der.ts';

export interface QcStatements {
  /** What it is for: websites is a QWAC, seals a QSEAL; `null` if it does not say. */
  readonly qcType: 'web' | 'seal' | 'signature' | null;
  /** Roles of the PSP: `PSP_PI`, `PSP_AI`, `PSP_AS`, `PSP_IC`. */
  readonly roles: readonly string[];
  /** The competent authority that has authorised it, such as `DE-BAFIN`. */
  readonly authority: { readonly id: string; readonly name: string } | null;
}

/** A certificate that states nothing. */
export const noStatements: QcStatements = { qcType: null, roles: [], authority: null };

/** What the extension 1.3.6.1.5.5.7.1.3 holds. @throws RangeError if that is no such thing */
export function parseQcStatements(extension: Buffer): QcStatements {
  const [all] = parseValues(extension);
  let known = noStatements;
  for (const one of parseSequence(all)) {
    const [id, info] = parseSequence(one);
    const read = readers[parseObjectId(id)];
    if (read && info) known = { ...known, ...read(info) };
  }
  return known;
}

const readers: Readonly<Record<string, (info: DerValue) => Partial<QcStatements>>> = {
  '0.4.0.1862.1.6': (info) => {
    const [type] = parseSequence(info);
    return { qcType: types[parseObjectId(type)] ?? null };
  },
  '0.4.0.19495.2': (info) => {
    const [roles, name, id] = parseSequence(info);
    return {
      roles: parseSequence(roles).map((role) => parseRole(role)),
      authority: { id: parseText(id), name: parseText(name) },
    };
  },
};

/** The name is written beside the identifier; that decides, where it is known. */
function parseRole(role: DerValue): string {
  const [id, name] = parseSequence(role);
  return roles[parseObjectId(id)] ?? parseText(name);
}

const types: Readonly<Record<string, QcStatements['qcType']>> = {
  '0.4.0.1862.1.6.1': 'signature',
  '0.4.0.1862.1.6.2': 'seal',
  '0.4.0.1862.1.6.3': 'web',
};

const roles: Readonly<Record<string, string>> = {
  '0.4.0.19495.1.1': 'PSP_AS',
  '0.4.0.19495.1.2': 'PSP_PI',
  '0.4.0.19495.1.3': 'PSP_AI',
  '0.4.0.19495.1.4': 'PSP_IC',
};
