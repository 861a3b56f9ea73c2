import type { SendRequest } from './connection.ts';
import type { Envelope, Written } from './envelope.ts';
import { inPage, type Page } from './pages.ts';
import { below } from './paths.ts';

/** A key in responses. */
export interface Key {
  readonly name: string;
  readonly type: string;
  readonly derived: boolean;
  readonly deletion_allowed: boolean;
  readonly soft_deleted: boolean;
  /** Absent unless the key will be deleted permanently. */
  readonly scheduled_deletion?: { readonly due_time: string };
  /** By version; absent if there are none. */
  readonly disabled_versions?: Readonly<Record<string, { readonly reason: string; readonly time: string }>>;
  readonly exportable: boolean;
  readonly allow_plaintext_backup: boolean;
  readonly auto_rotate_period: number;
  readonly imported: boolean;
  readonly latest_version: number;
  readonly min_available_version: number;
  readonly min_decryption_version: number;
  readonly min_encryption_version: number;
  /** Of the next three settings, 0 means off. */
  readonly keep_encryption_versions: number;
  readonly keep_decryption_versions: number;
  /** Seconds. */
  readonly trim_after: number;
  /** The minimums once the next version may be used, if they move by themselves, and the time of its automatic rotation. */
  readonly next_version?: {
    readonly time?: string;
    readonly min_decryption_version: number;
    readonly min_encryption_version: number;
  };
  /** The next deletion by `trim_after`, at the earliest. */
  readonly next_trim?: { readonly time: string; readonly min_available_version: number };
  /** By version: the creation time in seconds, or the public part of a key pair. */
  readonly keys: Readonly<Record<string, number | Readonly<Record<string, unknown>>>>;
  readonly [more: string]: unknown;
}

export interface KeyRequest {
  readonly type?: string;
  readonly derived?: boolean;
  readonly convergent_encryption?: boolean;
  readonly exportable?: boolean;
  readonly allow_plaintext_backup?: boolean;
  readonly key_size?: number;
  readonly auto_rotate_period?: string;
  readonly parameter_set?: string;
  readonly hybrid_key_type_pqc?: string;
  readonly hybrid_key_type_ec?: string;
  readonly managed_key_name?: string;
  readonly managed_key_id?: string;
}

export interface KeyConfig {
  readonly min_decryption_version?: number;
  readonly min_encryption_version?: number;
  readonly deletion_allowed?: boolean;
  readonly exportable?: boolean;
  readonly allow_plaintext_backup?: boolean;
  readonly auto_rotate_period?: string;
  readonly keep_encryption_versions?: number;
  readonly keep_decryption_versions?: number;
  readonly trim_after?: string;
  readonly min_mac_length?: number;
  readonly max_operations?: number;
}

/** For operations that take versions away. */
export interface LossOptions {
  /** Such as `30d`: refuses if a version that would go was used within this time, or if that is not known. */
  readonly unless_used_within?: string;
}

/** How often one version of a key was used, and when. */
export interface VersionUsage {
  readonly encryptions: number;
  readonly decryptions: number;
  readonly signatures: number;
  readonly verifications: number;
  readonly first_used_time: string;
  readonly last_used_time: string;
}

/** The uses of a key, by version. */
export interface KeyUsage {
  readonly name: string;
  /** All later uses are counted. Absent while some node does not count. */
  readonly counting_since?: string;
  readonly versions: Readonly<Record<string, VersionUsage>>;
  /** Encryptions and signatures that one version may make: the setting, or the default. Absent for any number. */
  readonly max_operations?: number;
  /** Nodes that did not answer: their uses since their last report are missing. */
  readonly unanswered_nodes: readonly string[];
}

/** Options of an operation on data. Binary values are base64. */
export interface DataOptions {
  readonly context?: string;
  readonly associated_data?: string;
  readonly key_version?: number;
  readonly nonce?: string;
  readonly padding_scheme?: string;
  /** Hash of OAEP. */
  readonly hash_algorithm?: string;
}

export interface RewrapOptions extends Pick<DataOptions, 'context' | 'associated_data' | 'key_version' | 'nonce'> {
  readonly decrypt_padding_scheme?: string;
  readonly decrypt_hash_algorithm?: string;
  readonly encrypt_padding_scheme?: string;
  readonly encrypt_hash_algorithm?: string;
}

export interface SignOptions {
  readonly key_version?: number;
  readonly hash_algorithm?: string;
  readonly context?: string;
  readonly signature_context?: string;
  readonly prehashed?: boolean;
  readonly signature_algorithm?: string;
  readonly marshaling_algorithm?: string;
  readonly salt_length?: string;
}

export interface Encrypted {
  readonly ciphertext: string;
  readonly key_version: number;
}

export interface DataKeys {
  readonly key_pairs: readonly { readonly ciphertext: string; readonly plaintext?: string }[];
  readonly key_version: number;
}

/** An item of a batch. It may have a `reference`, which its result repeats. */
export type BatchItem = Readonly<Record<string, unknown>>;
export interface BatchResults {
  readonly batch_results: readonly Readonly<Record<string, unknown>>[];
}

/** For operations that are safe to repeat. */
const pure = { repeatable: true };

/** Keys of one mount and their operations. Binary values are base64, as in JSON bodies. */
export class TransitCalls {
  readonly #send: SendRequest;
  readonly #mount: readonly string[];

  constructor(send: SendRequest, mount: string) {
    this.#send = send;
    this.#mount = below(mount);
  }

  #at(...segments: readonly string[]): readonly string[] {
    return [...this.#mount, ...segments];
  }

  keys(page: Page = {}): Promise<Envelope<{ readonly keys: readonly string[] }>> {
    return this.#send('LIST', this.#at('keys'), undefined, inPage(page));
  }

  key(name: string): Promise<Envelope<Key>> {
    return this.#send('GET', this.#at('keys', name));
  }

  /** Reads how often each version of a key was used, on all nodes. */
  keyUsage(name: string): Promise<Envelope<KeyUsage>> {
    return this.#send('GET', this.#at('keys', name, 'usage'));
  }

  createKey(name: string, request: KeyRequest = {}): Promise<Envelope<Key>> {
    return this.#send('POST', this.#at('keys', name), request);
  }

  rotateKey(name: string, managed: Pick<KeyRequest, 'managed_key_id' | 'managed_key_name'> = {}): Promise<Envelope<Key>> {
    return this.#send('POST', this.#at('keys', name, 'rotate'), managed);
  }

  configureKey(name: string, config: KeyConfig & LossOptions): Promise<Envelope<Key>> {
    return this.#send('POST', this.#at('keys', name, 'config'), config);
  }

  trimKey(name: string, minAvailableVersion: number, options: LossOptions = {}): Promise<Envelope<Key>> {
    return this.#send('POST', this.#at('keys', name, 'trim'), { min_available_version: minAvailableVersion, ...options });
  }

  deleteKey(name: string, options: LossOptions = {}): Promise<Written> {
    return this.#send('DELETE', this.#at('keys', name), undefined, { query: { ...options } });
  }

  /** Refuses every use of a key until it is restored. */
  softDeleteKey(name: string): Promise<Envelope<Key>> {
    return this.#send('DELETE', this.#at('keys', name, 'soft-delete'));
  }

  /** Soft-deletes a key, and deletes it permanently later. @param after - such as `30d` */
  scheduleDeletion(name: string, after: string, options: LossOptions = {}): Promise<Envelope<Key>> {
    return this.#send('POST', this.#at('keys', name, 'schedule-deletion'), { after, ...options });
  }

  /** Lets a soft-deleted key be used again, and cancels its scheduled deletion. */
  restoreDeletedKey(name: string): Promise<Envelope<Key>> {
    return this.#send('POST', this.#at('keys', name, 'soft-delete-restore'));
  }

  /** Refuses every use of a version that is not the latest. @param reason - shown to readers of the key */
  disableVersion(name: string, version: number, reason = ''): Promise<Envelope<Key>> {
    return this.#send('POST', this.#at('keys', name, 'versions', `${version}`, 'disable'), { reason });
  }

  /** Lets a disabled version be used again. */
  enableVersion(name: string, version: number): Promise<Envelope<Key>> {
    return this.#send('POST', this.#at('keys', name, 'versions', `${version}`, 'enable'));
  }

  /** Exports a key. @param kind - such as `encryption-key`, `public-key` @param format - `raw`, `der`, `pem` or `jwk` */
  exportKey(
    name: string,
    kind: string,
    { version, format }: { readonly version?: string | undefined; readonly format?: string | undefined } = {},
  ): Promise<Envelope<{ name: string; keys: Readonly<Record<string, string>> }>> {
    const path = this.#at('export', kind, name, ...(version === undefined ? [] : [version]));
    return this.#send('GET', path, undefined, format === undefined ? {} : { query: { format } });
  }

  wrappingKey(): Promise<Envelope<{ readonly public_key: string }>> {
    return this.#send('GET', this.#at('wrapping_key'));
  }

  importKey(name: string, material: Readonly<Record<string, unknown>>): Promise<Written> {
    return this.#send('POST', this.#at('keys', name, 'import'), material);
  }

  /** Adds a version to an imported key. */
  importVersion(name: string, material: Readonly<Record<string, unknown>>): Promise<Written> {
    return this.#send('POST', this.#at('keys', name, 'import_version'), material);
  }

  /** Exports a key, wrapped under the RSA key `destination` as an import takes it. */
  byokExport(
    destination: string,
    source: string,
    version?: string,
  ): Promise<Envelope<{ name: string; keys: Readonly<Record<string, string>> }>> {
    return this.#send('GET', this.#at('byok-export', destination, source, ...(version === undefined ? [] : [version])));
  }

  /** Signs a certificate request with a key. `csr`: PEM of a template */
  certificateRequest(
    name: string,
    request: { readonly csr?: string; readonly version?: number } = {},
  ): Promise<Envelope<{ readonly name: string; readonly csr: string }>> {
    return this.#send('POST', this.#at('keys', name, 'csr'), request, pure);
  }

  /** Stores the certificate chain of a version. `certificate_chain`: PEM, leaf first */
  setCertificate(name: string, request: { readonly certificate_chain: string; readonly version?: number }): Promise<Written> {
    return this.#send('POST', this.#at('keys', name, 'set-certificate'), request);
  }

  backupKey(name: string): Promise<Envelope<{ readonly backup: string }>> {
    return this.#send('GET', this.#at('backup', name));
  }

  /** Restores a key. @param name - replaces the name in the backup */
  restoreKey(
    backup: string,
    { name, force = false }: { readonly name?: string; readonly force?: boolean } = {},
  ): Promise<Written> {
    return this.#send('POST', this.#at('restore', ...(name === undefined ? [] : [name])), { backup, force });
  }

  /** Encrypts. May create a missing key; repeating the request does not create another. */
  encrypt(
    name: string,
    plaintext: string,
    options: DataOptions & { readonly type?: string; readonly convergent_encryption?: boolean } = {},
  ): Promise<Envelope<Encrypted>> {
    return this.#send('POST', this.#at('encrypt', name), { plaintext, ...options }, pure);
  }

  decrypt(
    name: string,
    ciphertext: string,
    options: Omit<DataOptions, 'key_version'> = {},
  ): Promise<Envelope<{ readonly plaintext: string }>> {
    return this.#send('POST', this.#at('decrypt', name), { ciphertext, ...options }, pure);
  }

  /** Encrypts under the latest version, with the same context and associated data. */
  rewrap(name: string, ciphertext: string, options: RewrapOptions = {}): Promise<Envelope<Encrypted>> {
    return this.#send('POST', this.#at('rewrap', name), { ciphertext, ...options }, pure);
  }

  /** Runs an operation on a batch. @throws RefusedError when an item failed; its `body` contains all results */
  batch(operation: string, name: string, items: readonly BatchItem[]): Promise<Envelope<BatchResults>> {
    return this.#send('POST', this.#at(operation, name), { batch_input: items }, pure);
  }

  datakey(
    name: string,
    kind: 'plaintext' | 'wrapped',
    options: DataOptions & { readonly bits?: number } = {},
  ): Promise<Envelope<Encrypted & { readonly plaintext?: string }>> {
    return this.#send('POST', this.#at('datakey', kind, name), options, pure);
  }

  /** Generates several data keys, all encrypted under one version. @param count - 1 to 1000 */
  datakeys(
    name: string,
    kind: 'plaintext' | 'wrapped',
    count: number,
    options: Omit<DataOptions, 'nonce'> & { readonly bits?: number } = {},
  ): Promise<Envelope<DataKeys>> {
    return this.#send('POST', this.#at('datakeys', kind, name), { count, ...options }, pure);
  }

  sign(name: string, input: string, options: SignOptions = {}): Promise<Envelope<{ signature: string; key_version: number }>> {
    return this.#send('POST', this.#at('sign', name), { input, ...options }, pure);
  }

  /** Verifies a signature, an HMAC or a CMAC. */
  verify(
    name: string,
    input: string,
    proof: { readonly signature: string } | { readonly hmac: string } | { readonly cmac: string; readonly mac_length?: number },
    options: Omit<SignOptions, 'key_version'> = {},
  ): Promise<Envelope<{ readonly valid: boolean }>> {
    return this.#send('POST', this.#at('verify', name), { input, ...proof, ...options }, pure);
  }

  hmac(
    name: string,
    input: string,
    options: { readonly algorithm?: string; readonly key_version?: number } = {},
  ): Promise<Envelope<{ hmac: string; key_version: number }>> {
    return this.#send('POST', this.#at('hmac', name), { input, ...options }, pure);
  }

  cmac(
    name: string,
    input: string,
    options: { readonly mac_length?: number; readonly key_version?: number } = {},
  ): Promise<Envelope<{ cmac: string; key_version: number }>> {
    return this.#send('POST', this.#at('cmac', name), { input, ...options }, pure);
  }

  hash(input: string, options: { algorithm?: string; format?: 'hex' | 'base64' } = {}): Promise<Envelope<{ sum: string }>> {
    return this.#send('POST', this.#at('hash'), { input, ...options }, pure);
  }

  random(bytes = 32, options: { format?: 'hex' | 'base64'; source?: string } = {}): Promise<Envelope<{ random_bytes: string }>> {
    return this.#send('POST', this.#at('random'), { bytes, ...options }, pure);
  }
}
