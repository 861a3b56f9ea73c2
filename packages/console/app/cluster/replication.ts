import { type Json, listIn, numberOrNone, objectIn, textIn } from '../api/json.ts';
import type { Tone } from '../parts/tone.ts';

/** A connection to another cluster of the set. */
export interface Connection {
  readonly name: string;
  /** Empty if unknown. */
  readonly status: string;
  readonly position: number | undefined;
  /** How far the secondary is behind its primary. */
  readonly lagEntries: number | undefined;
  readonly lagMs: number | undefined;
  readonly heartbeatMs: number | undefined;
}

/** The disaster-recovery replication of a cluster, as one of its nodes knows it. */
export interface ReplicationView {
  readonly mode: string;
  readonly state: string;
  readonly epoch: number | undefined;
  readonly position: number | undefined;
  /** The other clusters; undefined on a node that does not know them, because it is not active. */
  readonly connections: readonly Connection[] | undefined;
}

/** Reads the answer of `sys/replication/dr/status`. */
export function replicationIn(data: unknown): ReplicationView {
  const status = objectIn(data);
  return {
    mode: textIn(status['mode']) || 'disabled',
    state: textIn(status['state']),
    epoch: numberOrNone(status['epoch']),
    position: numberOrNone(status['last_wal']) ?? numberOrNone(status['last_remote_wal']),
    connections: connectionsIn(status),
  };
}

function connectionsIn(status: Json): readonly Connection[] | undefined {
  const { primaries, secondaries } = status;
  if (Array.isArray(primaries)) {
    const [primary] = primaries.map(objectIn);
    const address = textIn(primary?.['cluster_address']);
    return [{ ...connectionIn(status, address === '' ? 'primary' : address), heartbeatMs: heartbeatIn(primary) }];
  }
  if (!Array.isArray(secondaries)) return undefined;
  return listIn(secondaries)
    .map(objectIn)
    .map((one) => ({ ...connectionIn(one, textIn(one['node_id'])), position: numberOrNone(one['last_wal']) }));
}

const connectionIn = (value: Json, name: string): Connection => ({
  name,
  status: textIn(value['connection_status']),
  position: undefined,
  lagEntries: numberOrNone(value['lag_entries']),
  lagMs: numberOrNone(value['lag_ms']),
  heartbeatMs: heartbeatIn(value),
});

const heartbeatIn = (value: Json | undefined): number | undefined => numberOrNone(value?.['last_heartbeat_duration_ms']);

/** Returns the role of the cluster in words. */
export function roleOf({ mode, state }: ReplicationView): { readonly word: string; readonly tone: Tone } {
  const role = state || mode;
  if (role === 'primary') return { word: 'primary', tone: 'ok' };
  if (role === 'secondary') return { word: 'secondary', tone: 'info' };
  return { word: role, tone: 'warn' };
}

/** Returns the worst that can be said of a connection. */
export function connectionTone({ status }: Connection): Tone {
  if (status === 'connected') return 'ok';
  return status === 'connecting' ? 'warn' : 'bad';
}
