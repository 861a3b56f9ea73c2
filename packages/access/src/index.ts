export { AccessError, type AccessErrorCode } from './errors.ts';
export { type InitialAccess, initialAccess } from './initial-access.ts';
export { allows, type Capability, type Principal } from './principal.ts';
export { newToken } from './token.ts';
export { Tokens, type TokensOptions } from './tokens.ts';
