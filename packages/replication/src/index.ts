export {
  activationMsMax,
  type Credential,
  credentialOf,
  defaultActivationMs,
  emptyRegistry,
  following,
  follows,
  isSecondaryId,
  type Registry,
  revoked,
  secondariesMax,
  secondaryOfToken,
  tokenIssued,
  tokenUsed,
} from './registry/registry.ts';
export { decodeRegistry, encodeRegistry, registryPath } from './registry/registry-record.ts';
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
export {
  Contacts,
  type FenceSettings,
  fenceMsMax,
  fenceMsMin,
  fenceOf,
  fenceWaitMs,
  mayAccept,
} from './roles/fence.ts';
export { type Claim, claimOf, isSupersededBy, judgeClaim, meetingOf, successionKeyBytes } from './roles/meeting.ts';
export {
  isBeforeRestore,
  type PromotionDecision,
  type PromotionFacts,
  type PromotionRefusal,
  promotionOf,
  type ReportedPosition,
} from './roles/promotion.ts';
export {
  type Heard,
  type PromotableCluster,
  type Promote,
  PromotionControl,
} from './roles/promotion-control.ts';
export { type Fence, type FenceStatus, refusalWithoutPort, WriteFence } from './roles/write-fence.ts';
export { localPrefixes, localPrefixesOf, type SetSeal, setSealOf } from './scope.ts';
export { answerHello, type HelloAnswer } from './sessions/answer-hello.ts';
export { Follower, type FollowerAction } from './sessions/follower.ts';
export { type Lag, LagMeter } from './sessions/lag-meter.ts';
export { PrimarySession } from './sessions/primary-session.ts';
export { SecondarySession, type SecondaryStatus } from './sessions/secondary-session.ts';
export { Sender, type SenderLimits, type SenderStart } from './sessions/sender.ts';
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
export { snapshotToSend, stateFrames } from './sessions/state-frames.ts';
export { addressesMax, authoritiesMax, type Frame, type HelloRefusal, type PrimaryNodes } from './stream/frame.ts';
export { decodeFrame, encodeFrame, frameBytesMax } from './stream/frame-codec.ts';
export { type Consequence, consequenceOf, type Outcome } from './stream/outcome.ts';
export { type OutcomeHold, OutcomeLog, type OutcomeLogLimits } from './stream/outcome-log.ts';
