export type { AuthCalls, TokenCalls, TokenNamed, TokenProperties, TokenRequest } from './auth.ts';
export { TransitdClient } from './client.ts';
export type { ClientOptions, Method, RequestOptions, SendRequest, Streamed } from './connection.ts';
export type { DataKeyLimits } from './data-key-cache.ts';
export type { Auth, Envelope, Issued, RootGeneration, WrapInfo, Written } from './envelope.ts';
export { EnvelopeCipher, type EnvelopeOptions } from './envelope-cipher.ts';
export type { ByteStream } from './envelope-stream.ts';
export { type Outcome, RefusedError, UnansweredError } from './errors.ts';
export {
  type DecodedHeader,
  decodeFileHeader,
  type EncodedHeader,
  encodeFileHeader,
  type FileHeader,
  fileHeaderBytesMax,
} from './file-header.ts';
export { inPage, type Page } from './pages.ts';
export { type Path, PathError } from './paths.ts';
export { DamagedStream, dataKeyBytes, fileParameters, SegmentCipher, type SegmentParameters } from './segment-cipher.ts';
export type * from './sys.ts';
export type * from './sys-raft.ts';
export type {
  AcknowledgeRequest,
  ReplicationPromotion,
  ReplicationStatus,
  SalvageRequest,
  SecondaryTokenRequest,
} from './sys-replication.ts';
export type * from './transit.ts';
