import { readFileSync } from 'node:fs';
import { leavesCoreFiles } from '@transitd/process';
import { type Finding, fail, ok, warn } from './finding.ts';

/** What the process that runs this has in common with a node that is started here. */
export const checkMachine = (): readonly Finding[] => [nodeVersion(process.versions.node), ...coreLimit()];

export function nodeVersion(version: string): Finding {
  const major = Number(version.split('.')[0]);
  if (major === 24) return ok('Node.js', version);
  return major < 24
    ? fail('Node.js', version, 'start it with Node.js 24')
    : warn('Node.js', `${version} is not what this release was tested with`, 'start it with Node.js 24');
}

function coreLimit(): readonly Finding[] {
  try {
    return leavesCoreFiles(readFileSync('/proc/self/limits', 'utf8'))
      ? [warn('core files', 'a crash of a process started here may leave every key in a file', 'ulimit -c 0, or LimitCORE=0')]
      : [ok('core files', 'none are left')];
  } catch {
    return []; // no /proc: nothing to tell
  }
}
