/** Contradictions about the sides of the bank. */

import { noActiveEnvironment } from '../resolve-defaults.ts';
import { type CrossCheck, duplicates } from './contradiction.ts';

export const noEnvironment: CrossCheck = (_, { environmentNames }) => {
  if (environmentNames.length > 0) return [];
  const message =
    'at least one environment is needed; write environments: { sandbox: { baseUrl: https://api.bank.example/psd2 } }, ' +
    'or set PENSTOCK_ENVIRONMENTS_SANDBOX_BASE_URL';
  return [{ path: ['environments'], against: [], message }];
};

export const activeUnknown: CrossCheck = ({ environments }, { environmentNames: names }) => {
  if (names.length === 0 || names.includes(environments.active)) return [];
  const unnamed = environments.active === noActiveEnvironment;
  if (unnamed && names.length === 1) return [];
  const problem = unnamed
    ? 'with several environments, one must be active'
    : 'there is no environment of this name';
  return [
    { path: ['environments', 'active'], against: [], message: `${problem}; write ${names.join(' or ')}` },
  ];
};

export const environmentsMeet: CrossCheck = ({ environments }) =>
  duplicates(environments.all, ({ origin, basePath }) => origin + basePath).map(({ index, first }) => {
    const name = environments.all[index]?.name ?? '';
    const other = environments.all[first]?.name ?? '';
    return {
      path: ['environments', name, 'baseUrl'],
      against: [['environments', other, 'baseUrl']],
      message: `environment ${other} has the same address; a switch between them would change nothing`,
    };
  });

export const halfCertificate: CrossCheck = ({ environments }) =>
  environments.all.flatMap(({ name, tls }) => {
    if (!tls || (tls.certFile === undefined) === (tls.keyFile === undefined)) return [];
    const path = ['environments', name, 'tls'];
    const against = [
      [...path, 'certFile'],
      [...path, 'keyFile'],
    ];
    return [
      { path, against, message: 'a certificate and its key go together; give both certFile and keyFile' },
    ];
  });

export const tlsUnused: CrossCheck = ({ environments }) =>
  environments.all.flatMap(({ name, tls, origin }) => {
    if (!tls || origin.startsWith('https:')) return [];
    const message = 'baseUrl is a plain http: address, where none of this is used; remove it or write https:';
    return [{ path: ['environments', name, 'tls'], against: [['environments', name, 'baseUrl']], message }];
  });
