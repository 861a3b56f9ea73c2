import { createRequire } from 'node:module';
import type { PKCS11 } from 'pkcs11js';
import { Pkcs11Failure } from './failure.ts';

/** The calls of PKCS#11 2.40 that are made here; all of them block. */
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

/** The constants of the standard, by their names. */
export type Constants = typeof import('pkcs11js');

export interface Binding {
  readonly cryptoki: Cryptoki;
  readonly constants: Constants;
}

/** Loads a library, once for the thread; it is not initialized yet. @throws Pkcs11Failure `binding_missing`, `library_unusable` */
export function loadLibrary(path: string): Binding {
  const constants = loadBinding();
  const cryptoki = new constants.PKCS11();
  try {
    cryptoki.load(path);
  } catch (error) {
    throw new Pkcs11Failure('library_unusable', `the PKCS#11 library ${path} cannot be loaded`, { cause: error });
  }
  return { cryptoki, constants };
}

/** @throws Pkcs11Failure `library_unusable` */
export function initialize({ cryptoki, constants }: Binding, path: string): void {
  try {
    cryptoki.C_Initialize({ flags: constants.CKF_OS_LOCKING_OK });
  } catch (error) {
    if (returnValue(error) !== 'CKR_CRYPTOKI_ALREADY_INITIALIZED') {
      throw new Pkcs11Failure('library_unusable', `the PKCS#11 library ${path} does not start: ${said(error)}`);
    }
  }
}

/** Makes the library forget its tokens and sessions, so that {@link initialize} looks for them again. */
export function finalize({ cryptoki }: Binding): void {
  try {
    cryptoki.C_Finalize();
  } catch {
    // It was not initialized, or it is broken: initializing it says which.
  }
}

function loadBinding(): Constants {
  try {
    return createRequire(import.meta.url)('pkcs11js');
  } catch (error) {
    throw new Pkcs11Failure(
      'binding_missing',
      'keys in PKCS#11 tokens need the package pkcs11js, which is not built here: run "npm run build:pkcs11"',
      { cause: error },
    );
  }
}

/** The name of what a call returned, `CKR_…`; undefined for an error that no call returned. */
export function returnValue(error: unknown): string | undefined {
  return error instanceof Error ? /\bCKR_[A-Z0-9_]+/.exec(error.message)?.[0] : undefined;
}

/** What an error comes to in a message: nothing but the name of a return value, as texts of libraries could quote anything. */
export const said = (error: unknown): string => returnValue(error) ?? 'an unknown error';
