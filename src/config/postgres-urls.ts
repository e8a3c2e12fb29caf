/** The address of a PostgreSQL database, as libpq reads it (PostgreSQL, chapter libpq, "Connection URIs"). */

/** As in libpq, without `allow` and `prefer`: with those, somebody on the way can switch TLS off. */
const sslModes: readonly string[] = ['disable', 'require', 'verify-ca', 'verify-full'];

/**
 * @param text with one or several hosts: `postgres://user@host1:5432,host2/database?sslmode=verify-full`
 * @returns the address of each host, in their order; `undefined` if the text is not an address
 */
export function postgresUrls(text: string): readonly URL[] | undefined {
  const [, start = '', hosts = '', rest = ''] =
    /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#@]+)(\/[^/?#]+(?:\?[^#]*)?)$/.exec(text) ?? [];
  const addresses = hosts.split(',').map((host) => `${start}${host}${rest}`);
  return hosts !== '' &&
    addresses.every((address) => URL.canParse(address) && new URL(address).hostname !== '')
    ? addresses.map((address) => new URL(address))
    : undefined;
}

/** What is wrong with the parameters of an address, as a sentence. */
export function postgresParameterProblem({ searchParams }: URL): string | undefined {
  const names = [...searchParams.keys()];
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined) return `the parameter ${repeated} must not be repeated`;
  const mode = searchParams.get('sslmode');
  if (mode !== null && !sslModes.includes(mode)) return `sslmode must be one of ${sslModes.join(', ')}`;
  const files = ['sslrootcert', 'sslcert', 'sslkey'].filter((name) => searchParams.has(name));
  if (mode === null && files.length > 0)
    return `${files.join(' and ')} needs sslmode, for example verify-full`;
  if (searchParams.get('sslrootcert') === 'system' && mode !== 'verify-full')
    return 'sslrootcert=system needs sslmode=verify-full';
  if (mode === 'verify-ca' && !searchParams.has('sslrootcert'))
    return 'sslmode=verify-ca needs sslrootcert, the file with the certificate of your CA';
  return undefined;
}
