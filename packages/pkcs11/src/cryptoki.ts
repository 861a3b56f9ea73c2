import { createRequire } from 'node:module';
import type { PKCS11 } from 'pkcs11js';
import { Pkcs11Failure } from './failure.ts';

/** The PKCS#11 2.40 functions in use. All of them block. */
export type Cryptoki = Pick<
  PKCS11,
  | 'C_CloseSession'
  | 'C_Decrypt'
  | 'C_DecryptInit'
  | 'C_Encrypt'
  | 'C_EncryptFinal'
  | 'C_EncryptInit'
  | 'C_Finalize'
  | 'C_FindObjects'
  | 'C_FindObjectsFinal'
  | 'C_FindObjectsInit'
  | 'C_GenerateKey'
  | 'C_GenerateKeyPair'
  | 'C_GenerateRandom'
  | 'C_GetAttributeValue'
  | 'C_GetSlotList'
  | 'C_GetTokenInfo'
  | 'C_Initialize'
  | 'C_Login'
  | 'C_Logout'
  | 'C_OpenSession'
  | 'C_Sign'
  | 'C_SignInit'
>;

/** The constants of the standard by name. */
export type Constants = typeof import('pkcs11js');

export interface Binding {
  readonly cryptoki: Cryptoki;
  readonly constants: Constants;
}

/**
 * Loads a library without initializing it. A thread loads its library once.
 * @throws Pkcs11Failure `binding_missing`, `library_unusable`
 */
export function loadLibrary(path: string): Binding {
  const constants = loadBinding();
  const cryptoki = new constants.PKCS11();
  try {
    cryptoki.load(path);
  } catch (error) {
    throw new Pkcs11Failure('library_unusable', 'the PKCS#11 library cannot be loaded', { cause: error });
  }
  return { cryptoki, constants };
}

/** Initializes a library. @throws Pkcs11Failure `token_failed`: some libraries do not start while their token is away */
export function initialize({ cryptoki, constants }: Binding): void {
  try {
    cryptoki.C_Initialize({ flags: constants.CKF_OS_LOCKING_OK });
  } catch (error) {
    if (returnValue(error) !== 'CKR_CRYPTOKI_ALREADY_INITIALIZED') {
      throw new Pkcs11Failure('token_failed', `the PKCS#11 library does not start: ${safeReason(error)}`);
    }
  }
}

/** Finalizes the library, so that {@link initialize} searches for tokens again. */
export function finalize({ cryptoki }: Binding): void {
  try {
    cryptoki.C_Finalize();
  } catch {
    // The library was not initialized, or it is broken; the next `initialize` shows which.
  }
}

function loadBinding(): Constants {
  try {
    return createRequire(import.meta.url)('pkcs11js');
  } catch (error) {
    throw new Pkcs11Failure(
      'binding_missing',
      'keys in PKCS#11 tokens need the package pkcs11js, which is not built on this node: run "npm run build:pkcs11" in a checkout, or "npm rebuild --ignore-scripts=false pkcs11js" beside the npm package',
      { cause: error },
    );
  }
}

/** Returns the name of the return value in an error, `CKR_…`; undefined for any other error. */
export function returnValue(error: unknown): string | undefined {
  return error instanceof Error ? /\bCKR_[A-Z0-9_]+/.exec(error.message)?.[0] : undefined;
}

/** Returns the part of an error that is safe in a message: the return value. Texts of libraries could contain secrets. */
export const safeReason = (error: unknown): string => returnValue(error) ?? 'an unknown error';
