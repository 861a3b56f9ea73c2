import { createRequire } from 'node:module';
import { reasonOf } from '@transitd/process';

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
 * `sodium-native` is missing or has no binary, as on Linux with musl, and, with a warning of the process, where its binary cannot be
 * loaded. Loaded with the first Ed25519 key.
 */
export function sodium(): Sodium | undefined {
  loaded ??= { library: loadSodium(createRequire(import.meta.url)) };
  return loaded.library;
}

/** @param warn - called if it is there and cannot be loaded */
export function loadSodium(
  require: (name: string) => unknown,
  warn = (message: string): void => process.emitWarning(message, 'LibraryWarning'),
): Sodium | undefined {
  try {
    return require('sodium-native') as Sodium;
  } catch (error) {
    if (!isAbsent(error as NodeJS.ErrnoException))
      warn(`libsodium cannot be loaded, so Ed25519 signatures take twice the time: ${reasonOf(error)}`);
    return undefined;
  }
}

const isAbsent = ({ code }: NodeJS.ErrnoException): boolean => code === 'MODULE_NOT_FOUND' || code === 'ADDON_NOT_FOUND';
