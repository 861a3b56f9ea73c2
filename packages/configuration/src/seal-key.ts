import { BarrierError, checkSealConfig, type OneSeal } from '@transitd/barrier';
import { readSecretFile, StartError } from '@transitd/process';
import type { Config } from './schema.ts';

/** The seals that have their key on this node, not at a provider. */
type OwnSeal = Extract<Config['seal'], { type: 'shamir' | 'static' }>;

/**
 * Returns a seal, with the keys read from the files or variables that the configuration names.
 * @param user - id of the user who runs the node
 * @throws StartError
 */
export function sealConfig(seal: OwnSeal, user?: number): OneSeal {
  if (seal.type === 'shamir') return { type: 'shamir' };
  const { key_id, previous } = seal;
  const config: OneSeal = {
    type: 'static',
    current: { id: key_id, key: sealKey(seal, user) },
    ...(previous === undefined ? {} : { previous: { id: previous.key_id, key: sealKey(previous, user) } }),
  };
  try {
    checkSealConfig(config);
  } catch (error) {
    if (error instanceof BarrierError) throw new StartError(`seal: ${error.message}`);
    throw error;
  }
  return config;
}

interface KeySource {
  readonly key_file?: string | undefined;
  readonly key_env?: string | undefined;
}

/** Reads a 32-byte key from a file or an environment variable: raw, or as base64 or hex text. @throws StartError */
function sealKey({ key_file, key_env }: KeySource, user: number | undefined): Buffer {
  const where = key_file ?? `the environment variable ${key_env}`;
  let content: Buffer;
  try {
    content = key_file === undefined ? Buffer.from(process.env[key_env ?? ''] ?? '') : readSecretFile(key_file, user);
  } catch (error) {
    if (error instanceof StartError) throw new StartError(`seal: ${error.message}`);
    throw new StartError(`seal: ${where} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'unknown error'}`);
  }
  if (content.length === 32) return content;
  const text = content.toString('latin1').trim();
  if (/^[0-9a-fA-F]{64}$/.test(text)) return Buffer.from(text, 'hex');
  if (/^[A-Za-z0-9+/]{43}=$/.test(text)) return Buffer.from(text, 'base64');
  throw new StartError(`seal: ${where} does not contain a 32-byte key (raw, base64 or hex)`);
}
