import type { KeyPairBytes, SigningOptions } from './key-pair.ts';
import { onThreadBytesMax } from './native-signature.ts';
import type { Sodium } from './sodium.ts';

/** Wipes private keys once nothing can use them any longer. */
const garbage = new FinalizationRegistry<Uint8Array>((privateKey) => privateKey.fill(0));

/** Ed25519 with libsodium, without a context, for inputs that are not too long for this thread. */
export class QuickEd25519 {
  readonly #library: Sodium;
  readonly #publicKey: Uint8Array;
  /** Seed ‖ public key; empty if only the public half is known. It cannot be inside a KeyObject. */
  readonly #privateKey: Uint8Array;

  constructor(library: Sodium, { material, publicKey }: KeyPairBytes) {
    this.#library = library;
    this.#publicKey = Uint8Array.from(publicKey);
    this.#privateKey = bufferOutsideHeap(material.length);
    this.#privateKey.set(material);
    if (material.length > 0) garbage.register(this, this.#privateKey);
  }

  /** Returns the signature, which is the same from every implementation (RFC 8032 §5.1.6); undefined if node:crypto has to make it. */
  sign(input: Uint8Array, options: SigningOptions): Buffer | undefined {
    if (!isQuick(input, options)) return undefined;
    const signature = Buffer.alloc(64);
    this.#library.crypto_sign_detached(signature, input, this.#privateKey);
    return signature;
  }

  /** Returns whether libsodium accepts a signature of 64 bytes; undefined if it cannot decide. */
  accepts(input: Uint8Array, signature: Uint8Array, options: SigningOptions): boolean | undefined {
    return isQuick(input, options) ? this.#library.crypto_sign_verify_detached(signature, input, this.#publicKey) : undefined;
  }
}

/**
 * Returns zeros in memory of their own. V8 keeps an array of up to 64 bytes on its heap, and moves it away when native code takes it: a
 * copy would stay behind, which nobody wipes.
 */
export const bufferOutsideHeap = (length: number): Buffer => Buffer.from(new ArrayBuffer(length));

const isQuick = (input: Uint8Array, { signatureContext }: SigningOptions): boolean =>
  signatureContext.length === 0 && input.length <= onThreadBytesMax;
