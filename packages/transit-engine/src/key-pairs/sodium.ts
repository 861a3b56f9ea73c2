import { createRequire } from 'node:module';

/** Functions of libsodium for Ed25519. They throw for wrong lengths. */
export interface Sodium {
  /** @param signature - 64 bytes, which it overwrites @param secretKey - seed ‖ public key, 64 bytes */
  crypto_sign_detached(signature: Uint8Array, message: Uint8Array, secretKey: Uint8Array): void;
  /** @param signature - 64 bytes @param publicKey - 32 bytes */
  crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
}

let loaded: { readonly library: Sodium | undefined } | undefined;

/**
 * Returns libsodium, which signs and verifies Ed25519 twice as fast as node:crypto (decision 106). Undefined where the optional package
 * `sodium-native` is missing or has no binary, as on Linux with musl. Loaded with the first Ed25519 key.
 */
export function sodium(): Sodium | undefined {
  loaded ??= { library: load() };
  return loaded.library;
}

function load(): Sodium | undefined {
  try {
    return createRequire(import.meta.url)('sodium-native') as Sodium;
  } catch {
    return undefined;
  }
}
