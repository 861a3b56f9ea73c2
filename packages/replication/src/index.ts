export {
  credentialOf,
  defaultActivationMs,
  emptyRegistry,
  following,
  follows,
  isSecondaryId,
  type Registry,
  revoked,
  secondaryOfToken,
  tokenIssued,
  tokenUsed,
} from './registry/registry.ts';
export { StoredRegistry } from './registry/stored-registry.ts';
export { ReplicationError } from './replication-error.ts';
export {
  type Acknowledgement,
  type AcknowledgeSettings,
  acknowledgeMsDefault,
  acknowledgeMsMax,
  acknowledgeMsMin,
  acknowledgementOf,
  type SecondaryProgress,
} from './roles/acknowledgement.ts';
export { divergenceOf } from './roles/divergence.ts';
export { fenceMsMax, fenceMsMin } from './roles/fence.ts';
export { successionKeyBytes } from './roles/meeting.ts';
export { isBeforeRestore, type ReportedPosition } from './roles/promotion.ts';
export {
  type Heard,
  type PromotableCluster,
  type Promote,
  PromotionControl,
} from './roles/promotion-control.ts';
export { type Fence, refusalWithoutPort, WriteFence } from './roles/write-fence.ts';
export { localPrefixes, localPrefixesOf, type SetSeal, setSealOf } from './scope.ts';
export { PrimarySession } from './sessions/primary-session.ts';
export { SecondarySession, type SecondaryStatus } from './sessions/secondary-session.ts';
export {
  type PrimaryCluster,
  type Proposed,
  type SecondaryCluster,
  type SessionEnd,
  type SessionLimits,
  type StopReason,
  sessionLimits,
  type Wire,
} from './sessions/session-ports.ts';
export { snapshotToSend } from './sessions/state-frames.ts';
export { addressesMax, authoritiesMax, type Frame, type PrimaryNodes } from './stream/frame.ts';
export { decodeFrame, encodeFrame, frameBytesMax } from './stream/frame-codec.ts';
export { OutcomeLog } from './stream/outcome-log.ts';
