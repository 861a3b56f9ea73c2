import { bootstrapBase } from '../../src/confchange/conf-state.ts';
import { type RaftLimits, raftLimits } from '../../src/core/contract/limits.ts';
import type { RaftCore, Ready } from '../../src/core/contract/raft-core.ts';
import { Raft } from '../../src/core/raft.ts';
import type { LogStart } from '../../src/ports.ts';

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A node that has never run. */
export const freshStart: LogStart = {
  nodeId: 1,
  clusterId: 'c',
  incarnation: 1,
  hardState: { term: 0, vote: 0, commit: 0 },
  base: bootstrapBase(1),
  lastIndex: 0,
  bytes: 0,
  terms: [],
  confEntries: [],
};

export const coreOf = (start: Partial<LogStart> = {}, limits: Partial<RaftLimits> = {}, applied = 0): Raft =>
  new Raft({ ...freshStart, ...start }, { applied, limits: { ...raftLimits, ...limits }, seed: 1 });

/** Takes batches and acknowledges each at once, until no batch is left. */
export function settle(core: RaftCore): Ready[] {
  const batches: Ready[] = [];
  while (core.hasReady()) {
    const batch = core.ready();
    batches.push(batch);
    core.persisted(batch.seq);
    core.checkInvariants();
  }
  return batches;
}

/** A leader whose first entry, the no-op, is committed. */
export function leader(limits: Partial<RaftLimits> = {}): Raft {
  const core = coreOf({}, limits);
  core.tick(0);
  settle(core);
  return core;
}
