export { ClockJump, type ClockReading } from './clock-jump.ts';
export { clockRateError, outlastedBy, outlasting, undetectedPauseMs } from './clock-rates.ts';
export { type Changed, changeConf } from './confchange/change.ts';
export { bootstrapBase, flawOf, isVoter, membersOf, soleVoter, votersOf } from './confchange/conf-state.ts';
export type { CoverageEvent, Observe } from './core/contract/coverage-events.ts';
export { type RaftLimits, raftLimits } from './core/contract/limits.ts';
export type {
  ConfRefusal,
  CoreEvent,
  CoreRefusal,
  PeerStatus,
  ProposeResult,
  RaftCore,
  Ready,
  Status,
} from './core/contract/raft-core.ts';
export { Raft, type RaftOptions } from './core/raft.ts';
export type { ConfirmDone } from './driver/confirmations.ts';
export { Driver } from './driver/driver.ts';
export { type DriverLimits, driverLimits } from './driver/limits.ts';
export type { DriverOptions, DriverPorts, PeerPorts } from './driver/options.ts';
export type {
  ConfirmOutcome,
  ConfRefusalReason,
  DriverStatus,
  ProposalOutcome,
  ReadOutcome,
  RefusalReason,
  TransferOutcome,
  TransferRefusalReason,
} from './driver/outcome.ts';
export type { ProposalDone, ProposalObserver } from './driver/proposals.ts';
export type { ReadDone } from './driver/reads.ts';
export { runsWithoutPeers } from './driver/without-peers.ts';
export { type Grant, grantUntil, isHeld, type ReadMoment } from './grant.ts';
export { InvariantViolation, invariant } from './invariant.ts';
export { HistoryConflict } from './log/history-conflict.ts';
export { LogDamage } from './log/log-damage.ts';
export * from './ports.ts';
export { majority } from './quorum/majority.ts';
export * from './types.ts';
export { decodeBatch, encodeBatch } from './wire/batch.ts';
export { ByteReader } from './wire/byte-reader.ts';
export { CodecError } from './wire/codec-error.ts';
export { decodeConfState, encodeConfState } from './wire/conf-state.ts';
export { decodeMessage, encodeMessage, frameBytesMax, WIRE_VERSION } from './wire/message.ts';
export { decodeSnapshotMeta, encodeSnapshotMeta } from './wire/snapshot-meta.ts';
export { commonVersion, isInVersion, type WireVersions, wireVersions } from './wire/version.ts';
