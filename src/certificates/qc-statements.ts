/** The QC statements of a certificate: its type and the roles of the PSP (ETSI EN 319 412-5, ETSI TS 119 495 section 5.1). */

import { type DerValue, parseObjectId, parseSequence, parseText, parseValues } from './der.ts';

export interface QcStatements {
  /** `web` is a QWAC, `seal` a QSealC; `null` if the certificate states no type. */
  readonly qcType: 'web' | 'seal' | 'signature' | null;
  /** `PSP_PI`, `PSP_AI`, `PSP_AS`, `PSP_IC`. */
  readonly roles: readonly string[];
  /** The competent authority that has authorised the PSP, such as `DE-BAFIN`. */
  readonly authority: { readonly id: string; readonly name: string } | null;
}

/** The statements of a certificate without the extension. */
export const noStatements: QcStatements = { qcType: null, roles: [], authority: null };

/** Parses the content of extension 1.3.6.1.5.5.7.1.3. @throws RangeError if it is malformed */
export function parseQcStatements(extension: Buffer): QcStatements {
  const [all] = parseValues(extension);
  let statements = noStatements;
  for (const one of parseSequence(all)) {
    const [id, info] = parseSequence(one);
    const read = readers[parseObjectId(id)];
    if (read && info) statements = { ...statements, ...read(info) };
  }
  return statements;
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

/** A role has an identifier and a name: a known identifier takes precedence over the name. */
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
