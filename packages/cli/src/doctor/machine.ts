import { readFileSync } from 'node:fs';
import { leavesCoreFiles } from '@transitd/process';
import { type Finding, ok, warn } from './finding.ts';

/** Checks the settings of this process that a node started from this shell would inherit. */
export const checkMachine = (): readonly Finding[] => [nodeVersion(process.versions.node), ...coreLimit()];

/** Judges the version of Node that runs this command, which refuses to start under an older one. */
export const nodeVersion = (version: string): Finding =>
  version.startsWith('24.')
    ? ok('Node.js', version)
    : warn('Node.js', `${version} was not tested with this release`, 'use Node.js 24');

function coreLimit(): readonly Finding[] {
  try {
    return leavesCoreFiles(readFileSync('/proc/self/limits', 'utf8'))
      ? [warn('core files', 'core dumps are enabled: a crash can write every key to a file', 'set ulimit -c 0, or LimitCORE=0')]
      : [ok('core files', 'core dumps are disabled')];
  } catch {
    return []; // no /proc on this system
  }
}
