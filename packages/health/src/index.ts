export { type HealthAnswer, type HealthReport, healthAnswer, healthResponseText, type Moment } from './health-answer.ts';
export { codeMax, codeMin, defaultCodes, type HealthCode, type HealthQuery, parseHealthQuery } from './health-query.ts';
export {
  type Cluster,
  freshForIntervals,
  type HeartbeatTimes,
  isFresh,
  type NodeStatus,
  type ReplicationMode,
  type ReplicationModes,
} from './node-status.ts';
