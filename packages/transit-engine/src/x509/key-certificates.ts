import type { KeyObject } from 'node:crypto';
import type { Store } from '@transitd/storage-fsm';
import { DamagedRecord, TransitError } from '../errors.ts';
import type { CertifiedPair } from '../key-pairs/key-pair.ts';
import type { ChangeQueue } from '../keys/change-queue.ts';
import { replaceVersion, type StoredVersion } from '../keys/key.ts';
import type { KeyCache, LoadedKey } from '../keys/key-cache.ts';
import { apiNameOf } from '../keys/key-type.ts';
import type { Paths } from '../keys/paths.ts';
import { storedVersion, unlessGone } from '../keys/stored-versions.ts';
import { wipeSecrets } from '../keys/version-record.ts';
import { commitAndWipe } from '../secrets.ts';
import { certificateChain } from './certificate-chain.ts';
import { certificateRequest } from './certificate-request.ts';

/** What certificates share with the rest of the engine. */
export interface CertificateParts {
  readonly store: Store;
  readonly paths: Paths;
  readonly keys: KeyCache;
  readonly changes: ChangeQueue;
}

export interface CertificateSigningRequest {
  /** A number, `latest` or nothing, which is the latest. */
  readonly version?: string | undefined;
  /** PEM, whose subject and attributes are kept. */
  readonly template?: string | undefined;
}

export interface CertificateChainRequest {
  readonly version?: string | undefined;
  /** PEM, beginning with the certificate of the version itself. */
  readonly chain?: string | undefined;
}

/** Of a version of a key: its type as callers call it, and PEM. */
interface OfVersion {
  readonly name: string;
  readonly type: string;
  readonly version: number;
}

/** Requests for certificates, and the certificates that come of them. A refusal is a {@link TransitError}. */
export class KeyCertificates {
  readonly #parts: CertificateParts;

  constructor(parts: CertificateParts) {
    this.#parts = parts;
  }

  /** A request (PKCS #10) signed by a version of the key. @throws TransitError `key_not_found`, `invalid_request`, `key_version_unavailable` */
  request(
    name: string,
    { version: requested, template }: CertificateSigningRequest,
  ): Promise<OfVersion & { readonly csr: string }> {
    return this.#withVersion(name, requested, async (key, { version, record }, certified) => {
      if (record.material.length === 0) {
        throw new TransitError('invalid_request', 'could not create the csr: private key not imported for key version selected');
      }
      return { ...shown(key, version), csr: await certificateRequest(certified.privateKey(record.material), template) };
    });
  }

  /**
   * Keeps a chain with a version of the key, instead of the one it has.
   * @throws TransitError `key_not_found`, `invalid_request`, `key_version_unavailable`
   */
  setChain(
    name: string,
    { version: requested, chain: text = '' }: CertificateChainRequest,
  ): Promise<OfVersion & { readonly chain: string }> {
    const { store, paths } = this.#parts;
    return this.#withVersion(name, requested, async (key, stored, certified) => {
      const chain = certificateChain(text, { keyType: key.type.name, publicKey: publicKeyOf(stored, certified) });
      const transaction = replaceVersion(paths, key, stored, { ...stored.record, certificateChain: chain });
      return (await commitAndWipe(store, transaction)) === undefined ? undefined : { ...shown(key, stored.version), chain };
    });
  }

  /** In turn with the key's changes; starts over when `use` answers nothing. */
  #withVersion<T>(
    name: string,
    requested: string | undefined,
    use: (key: LoadedKey, version: StoredVersion, certified: CertifiedPair) => Promise<T | undefined>,
  ): Promise<T> {
    const { store, paths, keys, changes } = this.#parts;
    return changes.run(name, async () => {
      const key = await keys.key(name);
      if (key === undefined) throw new TransitError('key_not_found', `key with provided name '${name}' not found`);
      const certified = certifiedOf(key);
      const version = requestedVersion(key, requested);
      const stored = await unlessGone(store, paths, key, () => storedVersion(store, paths, key.record, version));
      if (stored === undefined) return undefined;
      try {
        return await use(key, stored, certified);
      } finally {
        wipeSecrets([stored.record]);
      }
    });
  }
}

/** @throws TransitError `invalid_request` */
function certifiedOf({ type, record }: LoadedKey): CertifiedPair {
  if (!type.supportsSigning) throw new TransitError('invalid_request', `key type '${type.name}' does not support signing`);
  if (record.derived) throw new TransitError('invalid_request', 'operation not supported for keys with derivation enabled');
  const certified = type.keyPair?.certified;
  if (certified === undefined) {
    throw new TransitError('invalid_request', `there are no certificates for keys of type '${apiNameOf(type)}'`);
  }
  return certified;
}

/** @throws TransitError `invalid_request`, `key_version_unavailable` */
function requestedVersion({ record: { latestVersion, minDecryptionVersion } }: LoadedKey, requested = ''): number {
  if (requested === '' || requested === 'latest') return latestVersion;
  if (!/^-?\d{1,15}$/.test(requested)) throw new TransitError('invalid_request', 'invalid key version');
  const version = Number(requested);
  if (version >= minDecryptionVersion && version <= latestVersion) return version;
  throw new TransitError('key_version_unavailable', 'no such key version');
}

function publicKeyOf({ record: { publicKey } }: StoredVersion, certified: CertifiedPair): KeyObject {
  if (publicKey === undefined) throw new DamagedRecord('a version of a key pair lacks its public half');
  return certified.publicKey(publicKey);
}

const shown = ({ name, type }: LoadedKey, version: number): OfVersion => ({ name, type: apiNameOf(type), version });
