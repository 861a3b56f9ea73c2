import { readFileSync } from 'node:fs';
import type { Config } from '@transitd/configuration';
import { requireOwnerWritable } from '@transitd/process';
import { type Finding, ok, warn } from './finding.ts';
import { endpointOf, unreachable } from './reach.ts';

/** Checks what a transit seal needs at the next unseal: its token and its provider. Nothing is sent to the provider. */
export async function transitSealFinding({
  address,
  token_file: file,
  token_env: variable,
}: Extract<Config['seal'], { type: 'transit' }>): Promise<Finding> {
  const isRead = file === undefined ? process.env[variable ?? ''] !== undefined : isReadable(file);
  if (!isRead && file !== undefined)
    return warn('seal', `seal.token_file ${file} is not readable`, 'provide a file with a token that only its owner can change');
  const reason = await unreachable(endpointOf(address));
  if (reason !== undefined)
    return warn(
      'seal',
      `${address} is not reachable: ${reason}`,
      'start that cluster: until it serves, a restarted node stays sealed',
    );
  return isRead
    ? ok('seal', `transit: ${address} is reachable and the token is readable`)
    : ok('seal', `transit: ${address} is reachable; the environment of the node provides the token`);
}

function isReadable(file: string): boolean {
  try {
    requireOwnerWritable(file);
    return readFileSync(file).length > 0;
  } catch {
    return false;
  }
}
