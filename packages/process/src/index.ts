export { callerGroup, canonicalCidr, commonCidrs, isCidr, plainAddress, withinCidrs } from './address.ts';
export { answerTo, bytesOf } from './answer.ts';
export { certificatesIn } from './certificates.ts';
export {
  type ClientCertificate,
  clientCertificateBytesMax,
  clientCertificateIn,
  clientCertificateText,
  clientCertificateTextMax,
  clientChainMax,
  clientChainsMax,
  isCertificate,
} from './client-certificate.ts';
export { type Clock, type RecordClock, systemClock } from './clock.ts';
export { escapeControls, escapeInJson } from './controls.ts';
export { leavesCoreFiles, warnOfCoreDumps } from './core-dumps.ts';
export { secondsOf } from './duration.ts';
export { endProcess } from './end-process.ts';
export { exitCode, StartError } from './exit.ts';
export { integerOf } from './integer.ts';
export { LogLimit } from './log-limit.ts';
export type { Logger } from './logger.ts';
export { nodeHttp } from './node-http.ts';
export { type BarrierOperation, type NodeObserver, noObserver } from './node-observer.ts';
export { OrdinaryEnd } from './ordinary-end.ts';
export { requireOwner, requireOwnerOnly } from './owner-only.ts';
export { isPublicAddress } from './public-address.ts';
export { reasonOf } from './reason.ts';
export { readNamedFile, readRegularFile, readSecretFile } from './regular-file.ts';
export { release } from './release.ts';
export type { Span, SpanName, TraceHeaders, Tracer } from './tracing.ts';
export { version } from './version.ts';
