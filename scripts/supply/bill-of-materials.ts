/** The bill of materials: what is loaded, used by tests and tools, or both, as CycloneDX 1.6 in JSON. */

/** What npm writes of one package (https://docs.npmjs.com/cli/configuring-npm/package-lock-json, `packages`). */
interface LockedPackage {
  readonly version: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly dependencies?: Names;
  readonly devDependencies?: Names;
  readonly optionalDependencies?: Names;
  readonly peerDependencies?: Names;
}
type Names = Readonly<Record<string, string>>;

/** What stands in `package-lock.json`: paths such as `node_modules/express`, and '' for the project itself. */
interface LockFile {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

interface Project {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
}

/** One package. @see https://cyclonedx.org/docs/1.6/json/#components */
interface Component {
  readonly type: 'library' | 'application';
  /** Where npm puts it: the same version may stand in several places, with other packages around it. */
  readonly 'bom-ref': string;
  readonly group?: string;
  readonly name: string;
  readonly version: string;
  readonly description?: string;
  /** `required` and `optional` ones are installed to serve; `excluded` ones are for tests and tools alone. */
  readonly scope?: 'required' | 'optional' | 'excluded';
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
  readonly licenses?: readonly Licence[];
  readonly purl: string;
}
type Licence = { readonly license: { readonly id: string } } | { readonly expression: string };

export interface Bill {
  readonly $schema: string;
  readonly bomFormat: 'CycloneDX';
  readonly specVersion: '1.6';
  readonly version: 1;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/**
 * Everything in the lock file, sorted by where it stands; no time and no serial number, so that the same is written
 * every time.
 */
export function billOf({ name, version, description, license }: Project, { packages }: LockFile): Bill {
  const paths = Object.keys(packages).toSorted();
  const installed = paths.filter((path) => path !== '');
  const purl = purlOf(name, version);
  const refOf = (path: string) => path || purl;
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        ...{ type: 'application', 'bom-ref': purl, name, version, description },
        ...{ licenses: licencesOf(license), purl },
      },
    },
    components: installed.map((path) => componentOf(path, packages[path] ?? { version: '' })),
    dependencies: paths.map((path) => ({
      ref: refOf(path),
      dependsOn: needsOf(packages, path).map(refOf).toSorted(),
    })),
  };
}

function componentOf(path: string, { version, license, integrity, dev, optional }: LockedPackage): Component {
  const fullName = nameAt(path);
  const [name = fullName, group] = fullName.split('/').toReversed();
  return {
    type: 'library',
    'bom-ref': path,
    ...(group !== undefined && { group }),
    ...{ name, version },
    scope: dev ? 'excluded' : optional ? 'optional' : 'required',
    ...(integrity !== undefined && { hashes: hashesOf(integrity) }),
    ...(license !== undefined && { licenses: licencesOf(license) }),
    purl: purlOf(fullName, version),
  };
}

/** `node_modules/a/node_modules/@b/c` holds `@b/c`. */
const nameAt = (path: string) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);

/** @see https://github.com/package-url/purl-spec: the @ of a scope is encoded */
const purlOf = (name: string, version: string) => `pkg:npm/${name.replace('@', '%40')}@${version}`;

const licencesOf = (license: string): readonly Licence[] =>
  / (OR|AND|WITH) /.test(license) ? [{ expression: license }] : [{ license: { id: license } }];

/** From Subresource Integrity (`sha512-` and base64) to what CycloneDX wants (`SHA-512` and hexadecimal). */
const hashesOf = (integrity: string) =>
  integrity.split(' ').map((hash) => {
    const [algorithm = '', digest = ''] = hash.split(/-(.*)/s);
    return {
      alg: algorithm.toUpperCase().replace('SHA', 'SHA-'),
      content: Buffer.from(digest, 'base64').toString('hex'),
    };
  });

/** Where the packages stand that one at this path asks for; optional and peer ones may not be there at all. */
function needsOf(packages: LockFile['packages'], path: string): readonly string[] {
  const { dependencies, devDependencies, optionalDependencies, peerDependencies } = packages[path] ?? {};
  const names = Object.keys({
    ...dependencies,
    ...devDependencies,
    ...optionalDependencies,
    ...peerDependencies,
  });
  return names.flatMap((name) => placeOf(packages, path, name) ?? []);
}

/** As Node looks for it: beside the one who asks, then one floor higher, up to the top. */
function placeOf(packages: LockFile['packages'], path: string, name: string): string | undefined {
  const place = `${path && `${path}/`}node_modules/${name}`;
  if (place in packages) return place;
  if (path === '') return undefined;
  const above = path.lastIndexOf('/node_modules/');
  return placeOf(packages, above < 0 ? '' : path.slice(0, above), name);
}
