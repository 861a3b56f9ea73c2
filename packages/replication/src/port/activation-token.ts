import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { isPair } from '@transitd/cluster';
import { isEpochId, jsonIn } from '@transitd/storage-fsm';
import { z } from 'zod';
import { ReplicationError } from '../replication-error.ts';
import { fenceMsMax, fenceMsMin } from '../roles/fence.ts';
import type { SetSeal } from '../scope.ts';
import { credentialFields, type PrimaryCredential } from './credential.ts';

/** The content of an activation token. Its key and certificate permit one call: to exchange them for those of the secondary. */
export interface ActivationToken extends PrimaryCredential {
  /** Id of the replication set. */
  readonly set: string;
  /** When the token expires, by the primary's clock. The primary decides. */
  readonly expiresMs: number;
  /** The fence of the set, in milliseconds; undefined if it is off. */
  readonly fenceMs?: number;
  /** Whether the clusters of the set share one Shamir seal, or each have their own. */
  readonly seal: SetSeal;
}

const charactersMax = 32 * 1024;
const algorithms = { alg: 'ECDH-ES', enc: 'A256GCM' } as const;
const prefix = 'transitd-dr.';
const curve = 'prime256v1';

const fenceSchema = z.number().int().min(fenceMsMin).max(fenceMsMax).exactOptional();
const schema = z
  .strictObject({
    ...credentialFields,
    set: z.string().refine(isEpochId),
    expires: z.number().positive(),
    fenceMs: fenceSchema,
    seal: z.enum(['shared', 'own'] satisfies SetSeal[]),
  })
  .refine(isPair);

/**
 * Creates the key for which tokens of a secondary are encrypted. Returns the private key (PEM), and the public key in the form that
 * operators pass on.
 */
export function makeTokenKey(): { readonly key: string; readonly publicKey: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: curve });
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
  };
}

/** Reads the public key of a secondary, as {@link makeTokenKey} returns it. @throws ReplicationError `malformed_key` */
export function tokenPublicKey(text: string): KeyObject {
  try {
    const key = createPublicKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'spki' });
    if (text.length <= 256 && key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === curve) return key;
  } catch {
    // The refusal below says what is wrong.
  }
  throw new ReplicationError(
    'malformed_key',
    'secondary_public_key is not the output of generate-public-key: base64 of an EC P-256 key (SPKI)',
  );
}

/**
 * Writes a token. With a public key it is encrypted for the secondary (JWE, ECDH-ES with AES-256-GCM). Without one, everybody who has the
 * text may use it, once.
 */
export async function writeActivationToken(token: ActivationToken, publicKey?: KeyObject): Promise<string> {
  const { clusterId: cluster, expiresMs: expires, ...fields } = token;
  const content = Buffer.from(JSON.stringify({ format: 1, cluster, expires, ...fields }));
  if (publicKey === undefined) return prefix + content.toString('base64url');
  const { CompactEncrypt } = await import('jose'); // loaded on demand: few nodes need it
  return new CompactEncrypt(content).setProtectedHeader(algorithms).encrypt(publicKey);
}

/**
 * Reads a token.
 * @param key - private key (PEM) of {@link makeTokenKey}, for a token that is encrypted
 * @throws ReplicationError `malformed`, `key_missing`, `wrong_key`
 */
export async function readActivationToken(text: string, key?: string): Promise<ActivationToken> {
  if (text.length > charactersMax) throw malformed();
  const content = text.startsWith(prefix) ? Buffer.from(text.slice(prefix.length), 'base64url') : await decrypted(text, key);
  const read = schema.safeParse(jsonIn(content));
  if (!read.success) throw malformed();
  const { format: _, cluster: clusterId, expires: expiresMs, ...fields } = read.data;
  return { clusterId, expiresMs, ...fields };
}

async function decrypted(text: string, key: string | undefined): Promise<Uint8Array> {
  if (!/^[\w-]+\.[\w-]*\.[\w-]+\.[\w-]+\.[\w-]+$/.test(text)) throw malformed();
  if (key === undefined)
    throw new ReplicationError('key_missing', 'the activation token is encrypted, and this cluster has made no public key');
  const { compactDecrypt } = await import('jose');
  try {
    const { plaintext } = await compactDecrypt(text, createPrivateKey(key), {
      keyManagementAlgorithms: [algorithms.alg],
      contentEncryptionAlgorithms: [algorithms.enc],
    });
    return plaintext;
  } catch {
    throw new ReplicationError('wrong_key', 'the activation token is damaged, or was encrypted for another public key');
  }
}

const malformed = (): ReplicationError => new ReplicationError('malformed', 'this is no activation token');
