import { realpathSync } from 'node:fs';
import type { TokenCall, TokenResult } from './call.ts';
import { Pkcs11Failure } from './failure.ts';
import { Library, type LibraryOptions } from './library.ts';
import { publicKeyOf } from './public-key.ts';
import type { GcmInput, NewTokenKey, SigningInput, TokenKey } from './token-key.ts';

/** A library in the configuration. */
export interface NamedLibrary {
  readonly name: string;
  /** Path of a shared object. Names with the same path share a thread. */
  readonly path: string;
}

export type Pkcs11TokensOptions = Omit<LibraryOptions, 'path'> & { readonly libraries: readonly NamedLibrary[] };

/**
 * The keys in the PKCS#11 tokens of this node. Every method throws {@link Pkcs11Failure}. Errors never contain the input of a call.
 */
export class Pkcs11Tokens {
  readonly #byName: ReadonlyMap<string, Library>;

  constructor({ libraries, ...options }: Pkcs11TokensOptions) {
    const byPath = new Map<string, Library>();
    const byName = new Map<string, Library>();
    for (const { name, path } of libraries) {
      const file = realPath(path);
      const library = byPath.get(file) ?? new Library({ path: file, ...options });
      byPath.set(file, library);
      byName.set(name, library);
    }
    this.#byName = byName;
  }

  /** Names of the configured libraries. */
  get libraries(): readonly string[] {
    return [...this.#byName.keys()];
  }

  /** Finds a key and returns its public half as SubjectPublicKeyInfo in DER; undefined for an AES key. */
  async describe(key: TokenKey): Promise<Buffer | undefined> {
    const found = await this.#call({ operation: 'describe', key });
    return found === undefined || found instanceof Uint8Array ? undefined : publicKeyOf(found);
  }

  /** Checks that the key is an AES key of 256 bits. */
  async requireAes256(key: TokenKey): Promise<void> {
    await this.#call({ operation: 'require_aes_256', key });
  }

  /** Generates a key that cannot leave the token, even if a key of that name exists. The call is never repeated. */
  async generate(key: TokenKey, as: NewTokenKey): Promise<void> {
    await this.#call({ operation: 'generate', key, as });
  }

  /** Signs. Returns an RSA signature, or r ‖ s of the curve's size. */
  sign(key: TokenKey, input: SigningInput): Promise<Buffer> {
    return this.#bytes({ operation: 'sign', key, input });
  }

  /** Encrypts. Returns ciphertext ‖ tag. */
  encrypt(key: TokenKey, input: GcmInput): Promise<Buffer> {
    return this.#bytes({ operation: 'encrypt', key, input });
  }

  decrypt(key: TokenKey, input: GcmInput): Promise<Buffer> {
    return this.#bytes({ operation: 'decrypt', key, input });
  }

  /** Draws random bytes of the token that has the key. */
  random(key: TokenKey, bytes: number): Promise<Buffer> {
    return this.#bytes({ operation: 'random', key, bytes });
  }

  /** Logs out of every token. Later calls fail with `closed`. */
  close(): void {
    for (const library of this.#byName.values()) library.close();
  }

  async #call(call: TokenCall): Promise<TokenResult> {
    const { library: name } = call.key;
    const library = this.#byName.get(name);
    if (library === undefined)
      throw new Pkcs11Failure('library_unusable', `no PKCS#11 library ${name} is configured on this node`);
    return library.call(call);
  }

  async #bytes(call: TokenCall): Promise<Buffer> {
    const result = await this.#call(call);
    if (!(result instanceof Uint8Array)) throw new Pkcs11Failure('token_failed', 'the token returned no result');
    return Buffer.from(result.buffer, result.byteOffset, result.length);
  }
}

/** Resolves symbolic links: a process loads a file once under all its names, and a login applies to all of them. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path; // loading the library will report the error
  }
}
