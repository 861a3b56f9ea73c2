export { Pkcs11Failure, type Pkcs11FailureCode } from './failure.ts';
export { type NamedLibrary, Pkcs11Tokens, type Pkcs11TokensOptions } from './pkcs11-tokens.ts';
export {
  type Curve,
  type GcmInput,
  type Mechanism,
  mechanisms,
  type NewTokenKey,
  type SigningInput,
  type TokenKey,
} from './token-key.ts';
