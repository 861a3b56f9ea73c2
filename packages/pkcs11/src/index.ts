export { Pkcs11Failure, type Pkcs11FailureCode } from './failure.ts';
export {
  type Curve,
  type GcmInput,
  type Mechanism,
  mechanisms,
  type NewTokenKey,
  type SigningInput,
  type TokenKey,
} from './token-key.ts';
export { type NamedLibrary, Tokens, type TokensOptions } from './tokens.ts';
