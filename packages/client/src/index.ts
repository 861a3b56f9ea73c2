export type { AuthCalls, TokenCalls, TokenNamed, TokenProperties, TokenRequest } from './auth.ts';
export { type SendRequest, TransitdClient } from './client.ts';
export type { ClientOptions, Method, RequestOptions, Streamed } from './connection.ts';
export type { Auth, Envelope, Issued, WrapInfo, Written } from './envelope.ts';
export { type Outcome, RefusedError, UnansweredError } from './errors.ts';
export { type Path, PathError } from './paths.ts';
export type * from './sys.ts';
export type * from './sys-raft.ts';
export type * from './transit.ts';
