import { constants, createCipheriv, createDecipheriv, type KeyObject, privateEncrypt, randomBytes } from 'node:crypto';
import { p256 } from '@noble/curves/nist.js';
import type { ManagedAlgorithm, ManagedKey, ManagedKeyReference, ManagedKeys, ManagedUsage } from '../../src/index.ts';
import { TransitError } from '../../src/values/errors.ts';

export interface MemoryKey {
  readonly id: string;
  readonly name: string;
  readonly algorithm: ManagedAlgorithm;
  readonly usages?: readonly ManagedUsage[];
  readonly privateKey?: KeyObject;
  readonly publicKey?: KeyObject;
  readonly secret?: Buffer;
}

/** A system that holds keys in memory and records its calls. */
export class MemoryManagedKeys implements ManagedKeys {
  readonly keys: MemoryKey[] = [];
  readonly calls: { readonly name: string; readonly iv?: string; readonly hash?: string | null; readonly saltBytes?: number }[] =
    [];

  async bind({ managedKeyName, managedKeyId }: ManagedKeyReference) {
    const key = this.keys.find(({ id, name }) => (managedKeyName ? name === managedKeyName : id === managedKeyId));
    if (key === undefined) throw new TransitError('key_not_found', `managed key ${managedKeyName || managedKeyId} not found`);
    const publicKey = key.publicKey?.export({ format: 'der', type: 'spki' });
    return { id: key.id, ...(publicKey && { publicKey }) };
  }

  async find(id: string): Promise<ManagedKey> {
    const key = this.keys.find((each) => each.id === id);
    if (key === undefined) throw new TransitError('key_not_found', `managed key ${id} not found`);
    const { name, algorithm, usages, privateKey, secret = Buffer.alloc(32) } = key;
    return {
      name,
      algorithm,
      usages: new Set(usages ?? (algorithm === 'aes-gcm' ? ['encrypt', 'decrypt'] : ['sign', 'verify'])),
      sign: async ({ digest, hash, saltBytes }) => {
        this.calls.push({ name, hash, saltBytes });
        if (privateKey === undefined) throw new Error('a key of another kind');
        if (algorithm === 'ecdsa') {
          const d = Buffer.from(privateKey.export({ format: 'jwk' }).d ?? '', 'base64url');
          return Buffer.from(p256.sign(digest, d, { prehash: false, lowS: false }));
        }
        if (algorithm === 'rsa-pkcs1v15' && hash === null)
          return privateEncrypt({ key: privateKey, padding: constants.RSA_PKCS1_PADDING }, digest);
        throw new Error('this system signs no digests of RSA');
      },
      encrypt: async ({ input, iv, associatedData }) => {
        this.calls.push({ name, iv: Buffer.from(iv).toString('hex') });
        const cipher = createCipheriv('aes-256-gcm', secret, iv).setAAD(associatedData);
        return Buffer.concat([cipher.update(input), cipher.final(), cipher.getAuthTag()]);
      },
      decrypt: async ({ input, iv, associatedData }) => {
        this.calls.push({ name, iv: Buffer.from(iv).toString('hex') });
        const decipher = createDecipheriv('aes-256-gcm', secret, iv).setAAD(associatedData);
        try {
          decipher.setAuthTag(input.subarray(-16));
          return Buffer.concat([decipher.update(input.subarray(0, -16)), decipher.final()]);
        } catch {
          throw new TransitError('invalid_ciphertext', `managed key ${name}: the ciphertext is not authentic`);
        }
      },
    };
  }
}

export const newId = (): string => {
  const hex = randomBytes(16).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
};
