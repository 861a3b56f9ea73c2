import { randomBytes } from 'node:crypto';
import { type DataOptions, RefusedError, type SignOptions } from '@transitd/client';
import type { Route } from './copy-key.ts';
import { abilitiesOf, firstVisible, type SeenKey } from './source-key.ts';

/** The result of a sample with one version of a key. */
export interface Sample {
  readonly version: number;
  readonly operation: 'decrypt' | 'verify' | 'hmac' | 'cmac';
  /** Undefined if it succeeded: the target decrypts or verifies what the source made. */
  readonly failure?: string;
}

/** The most versions of a key to sample: the oldest, the newest and some between. */
const versionsMax = 8;
const sampleBytes = 32;
const context = Buffer.from('transitd migrate').toString('base64');

/**
 * Lets the source encrypt, sign and compute MACs of random data, and the target decrypt and verify them.
 * @param hmacSecrets - whether the HMAC secrets of the key were moved
 */
export async function sampleKey(
  route: Route,
  key: SeenKey,
  { hmacSecrets }: { readonly hmacSecrets: boolean },
): Promise<readonly Sample[]> {
  const samples: Sample[] = [];
  for (const version of versionsToSample(key)) {
    const input = randomBytes(sampleBytes).toString('base64');
    for (const [operation, attempt] of attemptsOf(route, key, { version, input, hmacSecrets })) {
      const failure = await failureOf(attempt);
      samples.push({ version, operation, ...(failure !== undefined && { failure }) });
    }
  }
  return samples;
}

/** Returns versions that may encrypt and sign, ascending; always the first and the last of them. */
export function versionsToSample(key: SeenKey): readonly number[] {
  const first = Math.max(firstVisible(key), key.minEncryptionVersion);
  const length = Math.max(key.latestVersion - first + 1, 0);
  const usable = Array.from({ length }, (_, at) => first + at).filter((version) => !key.disabledVersions.includes(version));
  if (usable.length <= versionsMax) return usable;
  return Array.from({ length: versionsMax }, (_, at) => usable[Math.round((at * (usable.length - 1)) / (versionsMax - 1))] ?? 0);
}

/** Returns a ciphertext without its prefix and version. */
const payloadOf = (ciphertext: string): string => ciphertext.slice(ciphertext.lastIndexOf(':') + 1);

type Attempt = () => Promise<boolean>;

function attemptsOf(
  { source, target, mount }: Route,
  key: SeenKey,
  { version, input, hmacSecrets }: { readonly version: number; readonly input: string; readonly hmacSecrets: boolean },
): readonly (readonly [Sample['operation'], Attempt])[] {
  const { encrypts, signs, cmacs } = abilitiesOf(key.type);
  const [from, to] = [source.client.transit(mount), target.client.transit(mount)];
  const derivation: DataOptions & SignOptions = key.derived ? { context } : {};
  const isPublic = key.versions.get(version)?.publicKey !== '' && key.type.startsWith('rsa-');
  // The peers read no other prefix than their own.
  const readable = (made: string): string => (target.own ? made : made.replace(/^[^:]*:/, 'vault:'));
  const decrypts: Attempt = async () => {
    const { ciphertext } = (await from.encrypt(key.name, input, { ...derivation, key_version: version })).data;
    if ((await to.decrypt(key.name, readable(ciphertext), derivation)).data.plaintext !== input) return false;
    if (!key.convergent) return true;
    const again = (await to.encrypt(key.name, input, { ...derivation, key_version: version })).data.ciphertext;
    return payloadOf(again) === payloadOf(ciphertext);
  };
  const verifies: Attempt = async () => {
    const { signature } = (await from.sign(key.name, input, { ...derivation, key_version: version })).data;
    return (await to.verify(key.name, input, { signature: readable(signature) }, derivation)).data.valid;
  };
  const hmacs: Attempt = async () => {
    const { hmac } = (await from.hmac(key.name, input, { key_version: version })).data;
    return (await to.verify(key.name, input, { hmac: readable(hmac) })).data.valid;
  };
  const cmacVerifies: Attempt = async () => {
    const { cmac } = (await from.cmac(key.name, input, { key_version: version })).data;
    return (await to.verify(key.name, input, { cmac: readable(cmac) })).data.valid;
  };
  return [
    ...(encrypts ? [['decrypt', isPublic ? unlessPublicOnly(decrypts) : decrypts] as const] : []),
    ...(signs ? [['verify', unlessPublicOnly(verifies)] as const] : []),
    ...(hmacSecrets ? [['hmac', hmacs] as const] : []),
    ...(cmacs ? [['cmac', cmacVerifies] as const] : []),
  ];
}

const publicOnly = /does not (?:contain|have) a private (?:part|counterpart|half)/;

/** A version without its private half can neither sign nor decrypt at any end; its public keys are compared instead. */
const unlessPublicOnly =
  (attempt: Attempt): Attempt =>
  async () => {
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof RefusedError && publicOnly.test(error.message)) return true;
      throw error;
    }
  };

async function failureOf(attempt: Attempt): Promise<string | undefined> {
  try {
    return (await attempt()) ? undefined : 'the result at the target differs';
  } catch (error) {
    if (error instanceof RefusedError) return `refused with ${error.status}: ${error.message.replace(/\s+/g, ' ')}`;
    throw error;
  }
}
