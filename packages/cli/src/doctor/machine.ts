import { readFileSync } from 'node:fs';
import { leavesCoreFiles } from '@transitd/process';
import { type Finding, fail, ok, warn } from './finding.ts';

/** Checks the settings of this process that a node started from this shell would inherit. */
export const checkMachine = (): readonly Finding[] => [nodeVersion(process.versions.node), ...coreLimit()];

export function nodeVersion(version: string): Finding {
  const major = Number(version.split('.')[0]);
  if (major === 24) return ok('Node.js', version);
  return major < 24
    ? fail('Node.js', version, 'use Node.js 24')
    : warn('Node.js', `${version} was not tested with this release`, 'use Node.js 24');
}

function coreLimit(): readonly Finding[] {
  try {
    return leavesCoreFiles(readFileSync('/proc/self/limits', 'utf8'))
      ? [warn('core files', 'core dumps are enabled: a crash can write every key to a file', 'set ulimit -c 0, or LimitCORE=0')]
      : [ok('core files', 'core dumps are disabled')];
  } catch {
    return []; // no /proc on this system
  }
}
