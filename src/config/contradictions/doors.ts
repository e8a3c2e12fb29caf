/** Contradictions about who gets in: the two listeners, operators and clients. */

import { wildcardHosts } from '../resolve-defaults.ts';
import { isLoopback } from '../values.ts';
import { type CrossCheck, duplicates } from './contradiction.ts';

export const listenersMeet: CrossCheck = ({ listen, admin }) => {
  const sameHost =
    listen.host === admin.host || wildcardHosts.has(listen.host) || wildcardHosts.has(admin.host);
  if (listen.port !== admin.port || listen.port === 0 || !sameHost) return [];
  const message =
    'TPP systems and operators cannot share one host and port; choose another port than listen.port';
  const against = [
    ['listen', 'port'],
    ['listen', 'host'],
    ['admin', 'host'],
  ];
  return [{ path: ['admin', 'port'], against, message }];
};

export const adminUnguarded: CrossCheck = ({ admin }, { adminToken }) => {
  if (isLoopback(admin.host) || admin.tokenFile !== null || adminToken || admin.operators.length > 0)
    return [];
  const message =
    'operators can reach this from other machines, but none has a token; ' +
    'set admin.tokenFile, PENSTOCK_ADMIN_TOKEN or admin.operators, or listen on 127.0.0.1';
  return [
    {
      path: ['admin', 'host'],
      against: [
        ['admin', 'tokenFile'],
        ['admin', 'operators'],
      ],
      message,
    },
  ];
};

export const operatorsRepeat: CrossCheck = ({ admin }) => [
  ...duplicates(admin.operators, ({ name }) => name).map(({ index, first }) => ({
    path: ['admin', 'operators', index, 'name'],
    against: [['admin', 'operators', first]],
    message: `admin.operators[${first}] has this name already; the audit log must tell them apart`,
  })),
  ...duplicates(admin.operators, ({ tokenSha256 }) => tokenSha256).map(({ index, first }) => ({
    path: ['admin', 'operators', index, 'tokenSha256'],
    against: [['admin', 'operators', first]],
    message: `admin.operators[${first}] has this token already; give each operator a token`,
  })),
];

export const clientsRepeat: CrossCheck = ({ clients }) => [
  ...duplicates(clients, ({ name }) => name).map(({ index, first }) => ({
    path: ['clients', index, 'name'],
    against: [['clients', first, 'name']],
    message: `clients[${first}] has this name already; choose another`,
  })),
  ...(['apiKeySha256', 'certificateSha256'] as const).flatMap((key) =>
    duplicates(clients, (client) => client[key]).map(({ index, first }) => ({
      path: ['clients', index, key],
      against: [['clients', first, key]],
      message: `clients[${first}] has the same; give each client its own`,
    })),
  ),
];

export const clientNameless: CrossCheck = ({ clients }) =>
  clients.flatMap(({ apiKeySha256, certificateSha256 }, index) => {
    if (apiKeySha256 !== undefined || certificateSha256 !== undefined) return [];
    const path = ['clients', index];
    const against = [
      [...path, 'apiKeySha256'],
      [...path, 'certificateSha256'],
    ];
    return [
      { path, against, message: 'nothing proves who this client is; give apiKeySha256 or certificateSha256' },
    ];
  });

export const certificateNeverAsked: CrossCheck = ({ clients, listen }) => {
  if (listen.tls && listen.tls.clientCertificate !== 'off') return [];
  const message =
    'no certificate is ever asked for; set listen.tls.clientCertificate to optional or required';
  return clients.flatMap(({ certificateSha256 }, index) =>
    certificateSha256 === undefined
      ? []
      : [{ path: ['clients', index, 'certificateSha256'], against: [['listen', 'tls']], message }],
  );
};

export const certificateNeverBelieved: CrossCheck = ({ listen }) => {
  if (!listen.tls || listen.tls.clientCertificate === 'off' || listen.tls.clientCaFile !== undefined)
    return [];
  const message =
    'client certificates are asked for, but no authority is believed; set listen.tls.clientCaFile';
  const path = ['listen', 'tls', 'clientCertificate'];
  return [{ path, against: [['listen', 'tls', 'clientCaFile']], message }];
};

export const clientLost: CrossCheck = ({ clients }, { environmentNames: known }) =>
  clients.flatMap((client, index) =>
    client.environments.flatMap((name, at) => {
      if (known.length === 0 || known.includes(name)) return [];
      const path = ['clients', index, 'environments', at];
      return [
        { path, against: [], message: `there is no environment of this name; write ${known.join(' or ')}` },
      ];
    }),
  );
