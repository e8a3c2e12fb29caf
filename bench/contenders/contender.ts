/** A contender: a server that can be started and measured. */

import type { Launch } from '../measure/program.ts';

/** PEM files for a connection over TLS, in which both sides have a certificate of the same authority. */
export interface TlsFiles {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** The ports and the folder of a started contender. */
export interface ContenderEnvironment {
  /** The port it listens on, at 127.0.0.1. */
  readonly port: number;
  /** The bank's port. */
  readonly upstreamPort: number;
  /** The client certificate that the bank requires; `undefined` for a bank without TLS. */
  readonly upstreamTls: TlsFiles | undefined;
  readonly redisPort: number;
  /** An empty database, whose commits are on disk. */
  readonly postgresUrl: string;
  /** An empty folder of its own. */
  readonly folder: string;
}

export interface Contender {
  readonly name: string;
  /** A program that must be installed. */
  readonly requiredProgram?: string;
  /** Whether it forwards to the bank, or responds by itself. */
  readonly forwards: boolean;
  /** Called first, such as to create tables. */
  readonly prepare?: (surroundings: ContenderEnvironment) => Promise<void>;
  /** Writes its configuration into its folder. @returns one launch per process; all listen on the same port */
  readonly launches: (surroundings: ContenderEnvironment) => readonly Launch[];
}
