import type { Ask } from './client.ts';
import type { Envelope, Written } from './envelope.ts';
import { below } from './paths.ts';

/** As the server shows a key. */
export interface Key {
  readonly name: string;
  readonly type: string;
  readonly derived: boolean;
  readonly deletion_allowed: boolean;
  readonly exportable: boolean;
  readonly allow_plaintext_backup: boolean;
  readonly auto_rotate_period: number;
  readonly imported: boolean;
  readonly latest_version: number;
  readonly min_available_version: number;
  readonly min_decryption_version: number;
  readonly min_encryption_version: number;
  /** By version: the time in seconds, or what is public of a key pair. */
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
}

/** What goes with an operation on data. Binary values are base64. */
export interface DataOptions {
  readonly context?: string;
  readonly associated_data?: string;
  readonly key_version?: number;
  readonly nonce?: string;
  readonly padding_scheme?: string;
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

/** To be told apart from its siblings, an item may have a `reference`. */
export type BatchItem = Readonly<Record<string, unknown>>;
export interface BatchResults {
  readonly batch_results: readonly Readonly<Record<string, unknown>>[];
}

/** Nothing is changed by asking twice. */
const pure = { repeatable: true };

/** The keys of one mount, and what they do. Binary values are base64, as on the wire. */
export class TransitCalls {
  readonly #ask: Ask;
  readonly #mount: readonly string[];

  constructor(ask: Ask, mount: string) {
    this.#ask = ask;
    this.#mount = below(mount);
  }

  #at(...segments: readonly string[]): readonly string[] {
    return [...this.#mount, ...segments];
  }

  keys(): Promise<Envelope<{ readonly keys: readonly string[] }>> {
    return this.#ask('LIST', this.#at('keys'));
  }

  key(name: string): Promise<Envelope<Key>> {
    return this.#ask('GET', this.#at('keys', name));
  }

  createKey(name: string, request: KeyRequest = {}): Promise<Envelope<Key>> {
    return this.#ask('POST', this.#at('keys', name), request);
  }

  rotateKey(name: string, managed: Pick<KeyRequest, 'managed_key_id' | 'managed_key_name'> = {}): Promise<Envelope<Key>> {
    return this.#ask('POST', this.#at('keys', name, 'rotate'), managed);
  }

  configureKey(name: string, config: KeyConfig): Promise<Envelope<Key>> {
    return this.#ask('POST', this.#at('keys', name, 'config'), config);
  }

  trimKey(name: string, minAvailableVersion: number): Promise<Envelope<Key>> {
    return this.#ask('POST', this.#at('keys', name, 'trim'), { min_available_version: minAvailableVersion });
  }

  deleteKey(name: string): Promise<Written> {
    return this.#ask('DELETE', this.#at('keys', name));
  }

  /** @param kind - such as `encryption-key`, `public-key` */
  exportKey(
    name: string,
    kind: string,
    version?: string,
  ): Promise<Envelope<{ name: string; keys: Readonly<Record<string, string>> }>> {
    return this.#ask('GET', this.#at('export', kind, name, ...(version === undefined ? [] : [version])));
  }

  wrappingKey(): Promise<Envelope<{ readonly public_key: string }>> {
    return this.#ask('GET', this.#at('wrapping_key'));
  }

  importKey(name: string, material: Readonly<Record<string, unknown>>): Promise<Written> {
    return this.#ask('POST', this.#at('keys', name, 'import'), material);
  }

  backupKey(name: string): Promise<Envelope<{ readonly backup: string }>> {
    return this.#ask('GET', this.#at('backup', name));
  }

  /** @param name - in the place of the one in the backup */
  restoreKey(
    backup: string,
    { name, force = false }: { readonly name?: string; readonly force?: boolean } = {},
  ): Promise<Written> {
    return this.#ask('POST', this.#at('restore', ...(name === undefined ? [] : [name])), { backup, force });
  }

  /** A key that is not there may be made by this; the same again makes no second one. */
  encrypt(name: string, plaintext: string, options: DataOptions & { readonly type?: string } = {}): Promise<Envelope<Encrypted>> {
    return this.#ask('POST', this.#at('encrypt', name), { plaintext, ...options }, pure);
  }

  decrypt(name: string, ciphertext: string, options: DataOptions = {}): Promise<Envelope<{ readonly plaintext: string }>> {
    return this.#ask('POST', this.#at('decrypt', name), { ciphertext, ...options }, pure);
  }

  rewrap(name: string, ciphertext: string, options: DataOptions = {}): Promise<Envelope<Encrypted>> {
    return this.#ask('POST', this.#at('rewrap', name), { ciphertext, ...options }, pure);
  }

  /** @throws RefusedError when an item failed; its `body` holds the results all the same */
  batch(operation: string, name: string, items: readonly BatchItem[]): Promise<Envelope<BatchResults>> {
    return this.#ask('POST', this.#at(operation, name), { batch_input: items }, pure);
  }

  datakey(
    name: string,
    kind: 'plaintext' | 'wrapped',
    options: DataOptions & { readonly bits?: number } = {},
  ): Promise<Envelope<Encrypted & { readonly plaintext?: string }>> {
    return this.#ask('POST', this.#at('datakey', kind, name), options, pure);
  }

  sign(name: string, input: string, options: SignOptions = {}): Promise<Envelope<{ signature: string; key_version: number }>> {
    return this.#ask('POST', this.#at('sign', name), { input, ...options }, pure);
  }

  /** @param proof - one of a signature, an HMAC, a CMAC */
  verify(
    name: string,
    input: string,
    proof: { readonly signature: string } | { readonly hmac: string } | { readonly cmac: string },
    options: SignOptions = {},
  ): Promise<Envelope<{ readonly valid: boolean }>> {
    return this.#ask('POST', this.#at('verify', name), { input, ...proof, ...options }, pure);
  }

  hmac(
    name: string,
    input: string,
    options: { readonly algorithm?: string; readonly key_version?: number } = {},
  ): Promise<Envelope<{ hmac: string; key_version: number }>> {
    return this.#ask('POST', this.#at('hmac', name), { input, ...options }, pure);
  }

  cmac(
    name: string,
    input: string,
    options: { readonly mac_length?: number; readonly key_version?: number } = {},
  ): Promise<Envelope<{ cmac: string; key_version: number }>> {
    return this.#ask('POST', this.#at('cmac', name), { input, ...options }, pure);
  }

  hash(input: string, options: { algorithm?: string; format?: 'hex' | 'base64' } = {}): Promise<Envelope<{ sum: string }>> {
    return this.#ask('POST', this.#at('hash'), { input, ...options }, pure);
  }

  random(bytes = 32, options: { format?: 'hex' | 'base64'; source?: string } = {}): Promise<Envelope<{ random_bytes: string }>> {
    return this.#ask('POST', this.#at('random'), { bytes, ...options }, pure);
  }
}
