/** What is measured: a server that can be started, and what it is good for. */

import type { Launch } from '../measure/program.ts';

/** What a contender finds when it is started. */
export interface Surroundings {
  /** Where it listens on 127.0.0.1. */
  readonly port: number;
  /** Where the bank listens. */
  readonly upstreamPort: number;
  readonly redisPort: number;
  /** An empty folder of its own. */
  readonly folder: string;
}

export interface Contender {
  readonly name: string;
  /** A program that must be installed, if it is none of ours. */
  readonly needs?: string;
  /** Whether it asks the bank; else it answers by itself. */
  readonly forwards: boolean;
  /** Writes what it needs into its folder. @returns one launch for each of its processes; all listen on the port */
  readonly launches: (surroundings: Surroundings) => readonly Launch[];
}
