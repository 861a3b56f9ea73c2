export { ChangePublisher, type ChangePublisherOptions, type GatewayLink } from './coherence/change-publisher.ts';
export { ChangeReader, type ChangeReaderOptions } from './coherence/change-reader.ts';
export { GatewayLag } from './coherence/gateway-lag.ts';
export type {
  ChangeMessage,
  ChangeNumber,
  GatewayMessage,
  ReplyMessage,
  ReplyResult,
  WakeMessage,
} from './coherence/messages.ts';
export { ChangeFeed, type ChangeFeedOptions } from './replica/change-feed.ts';
export { ReplicaHost, type ReplicaHostOptions } from './replica/replica-host.ts';
export { ReplicaProxy, type ReplicaProxyOptions } from './replica/replica-proxy.ts';
export { Deadline, type DeadlineName } from './shared/deadline.ts';
export { type NodeMemory, newNodeMemory } from './shared/node-memory.ts';
export { SealFlag } from './shared/seal-flag.ts';
export { SharedClock } from './shared/shared-clock.ts';
export { type ChangingStatus, SharedStatus } from './shared/shared-status.ts';
