import { realpathSync } from 'node:fs';
import type { TokenCall, TokenResult } from './call.ts';
import { Pkcs11Failure } from './failure.ts';
import { Library, type LibraryOptions } from './library.ts';
import { publicKeyOf } from './public-key.ts';
import type { GcmInput, NewTokenKey, SigningInput, TokenKey } from './token-key.ts';

/** A library that the operator has named. */
export interface NamedLibrary {
  readonly name: string;
  /** Of a shared object. Two names of one path share its thread. */
  readonly path: string;
}

export type Pkcs11TokensOptions = Omit<LibraryOptions, 'path'> & { readonly libraries: readonly NamedLibrary[] };

/**
 * The keys in PKCS#11 tokens that this node reaches. Every method throws {@link Pkcs11Failure}. Errors of a token never tell what
 * it was given.
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

  /** Names that keys may give as their library. */
  get libraries(): readonly string[] {
    return [...this.#byName.keys()];
  }

  /** Finds the key. @returns its public half, SubjectPublicKeyInfo in DER; nothing for an AES key */
  async describe(key: TokenKey): Promise<Buffer | undefined> {
    const found = await this.#call({ operation: 'describe', key });
    return found === undefined || found instanceof Uint8Array ? undefined : publicKeyOf(found);
  }

  /** Makes a key of that name which never leaves the token, whether or not there is one already. Never tried twice. */
  async generate(key: TokenKey, as: NewTokenKey): Promise<void> {
    await this.#call({ operation: 'generate', key, as });
  }

  /** An RSA signature, or r ‖ s of the curve's size. */
  sign(key: TokenKey, input: SigningInput): Promise<Buffer> {
    return this.#bytes({ operation: 'sign', key, input });
  }

  /** @returns ciphertext ‖ tag */
  encrypt(key: TokenKey, input: GcmInput): Promise<Buffer> {
    return this.#bytes({ operation: 'encrypt', key, input });
  }

  decrypt(key: TokenKey, input: GcmInput): Promise<Buffer> {
    return this.#bytes({ operation: 'decrypt', key, input });
  }

  /** Logs out of every token. Nothing is to be asked afterwards. */
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
    if (!(result instanceof Uint8Array)) throw new Pkcs11Failure('token_failed', 'the token answered nothing');
    return Buffer.from(result.buffer, result.byteOffset, result.length);
  }
}

/** Without symbolic links: a process loads one file once, whatever its names, and a login in it holds for all of them. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path; // said when it is loaded
  }
}
