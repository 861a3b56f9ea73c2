import type { LogIndex } from '@transitd/raft-core';
import { recordDigest } from './digest.ts';
import {
  type Cursor,
  continues,
  cursorOf,
  epochsMax,
  isIndex,
  isLocal,
  isReplicationState,
  type ReplicationState,
  sameEpoch,
} from './replication-state.ts';
import {
  noEffect,
  type ReplicatedRecord,
  type ReplicatedWrite,
  type ReplicationPlace,
  type ReplicationStep,
  type StepEffect,
} from './replication-step.ts';
import { attemptOf, type Spaces, staged, stagedAttempt, withLive } from './spaces.ts';
import type { Write } from './write.ts';

/**
 * Returns the effect of a step; a pure function, so that it is the same on every node. `conflict`: the step does not fit the state, or
 * would make one that cannot be stored.
 */
export function applyReplicationStep(step: ReplicationStep, place: ReplicationPlace): StepEffect | 'conflict' {
  const effect = effectOf(step, place);
  if (effect === 'conflict' || effect.state === undefined) return effect;
  const isStorable = isReplicationState(effect.state) && isIndex(place.index + effect.state.offset);
  return isStorable ? effect : 'conflict';
}

function effectOf(step: ReplicationStep, place: ReplicationPlace): StepEffect | 'conflict' {
  const { state } = place;
  if (step.kind === 'establish') return establish(step, place);
  if (step.kind === 'attach') return attach(step, place);
  if (state === undefined) return 'conflict';
  switch (step.kind) {
    case 'follow':
      return follow(step, state, place);
    case 'adopt':
      return adopt(step, state);
    case 'stage':
      return stage(step, state, place.spaces);
    case 'swap':
      return swap(step, state, place);
    case 'promote':
      return promote(step, state, place.index);
    case 'leave':
      return leave(step, state, place.index);
    case 'restore':
      return restore(step, state, place);
    case 'demote': {
      const current = state.epochs.at(-1);
      if (state.role !== 'primary' || current === undefined || !sameEpoch(current, step.from)) return 'conflict';
      return changed({ ...state, role: 'demoted', index: place.index + state.offset });
    }
    case 'supersede':
      return supersede(step, state, place.index);
    case 'disable':
      // A secondary with a state leaves instead, which gives it another key.
      if (state.role !== 'primary' && state.epochs.length > 0) return 'conflict';
      return changed({ ...state, role: 'disabled', epochs: [], index: 0 });
  }
}

const changed = (state: ReplicationState): StepEffect => ({ ...noEffect, state });

function establish({ set, id, local, fenceMs }: ReplicationStep & { kind: 'establish' }, { state, index }: ReplicationPlace) {
  if (state !== undefined && state.role !== 'disabled') return 'conflict';
  const { offset, seen } = state ?? { offset: 0, seen: 0 };
  const number = seen + 1;
  return changed({
    ...{ role: 'primary', set, local, offset, seen: number, index: index + offset },
    epochs: [{ number, id, start: index + offset }],
    ...(fenceMs !== undefined && { fenceMs }),
  });
}

/** A former primary of the set keeps its epochs, so that its new primary can tell whether it has diverged. */
function attach(
  { set, local, fenceMs }: ReplicationStep & { kind: 'attach' },
  { state }: ReplicationPlace,
): StepEffect | 'conflict' {
  if (state?.role === 'primary' || (state !== undefined && state.role !== 'disabled' && state.set !== set)) return 'conflict';
  if (state === undefined || state.role === 'disabled')
    return changed({
      ...{ role: 'secondary', set, local, epochs: [], index: 0 },
      ...{ offset: state?.offset ?? 0, seen: state?.set === set ? state.seen : 0 },
      ...(fenceMs !== undefined && { fenceMs }),
    });
  return changed({ ...state, role: 'secondary', local });
}

const isAt = (state: ReplicationState, { number, id, index }: Cursor): boolean => {
  const at = cursorOf(state);
  return at !== undefined && sameEpoch(at, { number, id }) && at.index === index;
};

function follow(
  { from, to, writes, valuesWritten, local }: ReplicationStep & { kind: 'follow' },
  state: ReplicationState,
  place: ReplicationPlace,
): StepEffect | 'conflict' {
  if (state.role !== 'secondary' || !isAt(state, from) || to <= from.index) return 'conflict';
  const fits = writes.every(({ path, revision }) => revision > from.index && revision <= to && !isLocal(state, path));
  if (!fits || !areUnchanged(local, state, place)) return 'conflict';
  return {
    ...noEffect,
    byPath: [...writes, ...localWrites(local, state, place)],
    valuesWritten: { added: valuesWritten + local.length, atLeast: 0 },
    state: { ...state, index: to },
  };
}

function adopt({ from, epochs }: ReplicationStep & { kind: 'adopt' }, state: ReplicationState): StepEffect | 'conflict' {
  const last = epochs.at(-1);
  if (state.role !== 'secondary' || !isAt(state, from) || last === undefined || !continues(epochs, from)) return 'conflict';
  if (last.number <= from.number) return 'conflict';
  return changed({ ...state, epochs, seen: Math.max(state.seen, last.number) });
}

function stage(
  { attempt: id, chunk, records }: ReplicationStep & { kind: 'stage' },
  state: ReplicationState,
  spaces: Spaces,
): StepEffect | 'conflict' {
  if (state.role !== 'secondary' || records.some(({ path }) => isLocal(state, path))) return 'conflict';
  const attempt = attemptOf(spaces, id);
  if (attempt === undefined || spaces.live === id) return 'conflict';
  if (chunk !== attempt.chunks) return chunk < attempt.chunks ? noEffect : 'conflict';
  return { ...noEffect, ...staged(spaces, attempt, records, recordDigest) };
}

function swap(
  step: ReplicationStep & { kind: 'swap' },
  state: ReplicationState,
  place: ReplicationPlace,
): StepEffect | 'conflict' {
  const { valuesWritten, epochs, index, restoredAt, local, localReadAt } = step;
  const attempt = stagedAttempt(place.spaces, step);
  const last = epochs.at(-1);
  if (state.role !== 'secondary' || attempt === undefined) return 'conflict';
  if (last === undefined || index < last.start || !isForward(state, { ...last, index })) return 'conflict';
  if ((attempt.localWriteAt ?? 0) > localReadAt || !areUnchanged(local, state, place)) return 'conflict';
  const { restoredAt: _, ...own } = state;
  return {
    ...noEffect,
    byPath: localWrites(local, state, place),
    valuesWritten: { added: local.length, atLeast: valuesWritten + local.length },
    state: {
      ...{ ...own, epochs, index, seen: Math.max(state.seen, last.number) },
      ...(restoredAt !== undefined && { restoredAt }),
    },
    spaces: withLive(place.spaces, attempt, state.local),
  };
}

function restore(
  step: ReplicationStep & { kind: 'restore' },
  state: ReplicationState,
  place: ReplicationPlace,
): StepEffect | 'conflict' {
  const { from, valuesWritten, conditions, writes, local, localReadAt } = step;
  const { spaces, index, revisionOf } = place;
  const attempt = stagedAttempt(spaces, step);
  const current = state.epochs.at(-1);
  if (spaces.live === step.attempt) return noEffect; // proposed again
  if (state.role !== 'primary' || current === undefined || !sameEpoch(current, from)) return 'conflict';
  if (attempt === undefined) return 'conflict';
  if (!conditions.every(({ path, revision }) => revisionOf(path) === revision)) return 'conflict';
  if (writes.some(({ path }) => isLocal(state, path))) return 'conflict';
  if ((attempt.localWriteAt ?? 0) > localReadAt || !areUnchanged(local, state, place)) return 'conflict';
  const restoredAt = index + state.offset;
  const encrypted = writes.length + local.length;
  return {
    ...noEffect,
    byPath: [...writes.map((write) => ({ ...write, revision: restoredAt })), ...localWrites(local, state, place)],
    valuesWritten: { added: encrypted, atLeast: valuesWritten + encrypted },
    state: { ...state, restoredAt },
    spaces: withLive(spaces, attempt, state.local),
  };
}

/** Returns whether these are local records at their present revisions. */
const areUnchanged = (local: readonly ReplicatedRecord[], state: ReplicationState, { revisionOf }: ReplicationPlace): boolean =>
  local.every(({ path, revision }) => isLocal(state, path) && revisionOf(path) === revision);

const localWrites = (
  local: readonly ReplicatedRecord[],
  { offset }: ReplicationState,
  { index }: ReplicationPlace,
): ReplicatedWrite[] => local.map(({ path, value }) => ({ path, value, revision: index + offset }));

/**
 * Returns whether this cluster may take over a state at the cursor. The state must not be behind this cluster, and must not come from a
 * rival of its primary.
 */
function isForward(state: ReplicationState, cursor: Cursor): boolean {
  const at = cursorOf(state);
  if (at === undefined || cursor.number > at.number) return true;
  return sameEpoch(cursor, at) && cursor.index >= at.index;
}

function promote(
  { from, id, writes }: ReplicationStep & { kind: 'promote' },
  state: ReplicationState,
  index: LogIndex,
): StepEffect | 'conflict' {
  if (state.role === 'primary' || state.role === 'disabled' || !isAt(state, from)) return 'conflict';
  if (writes.some(({ path }) => isLocal(state, path))) return 'conflict';
  const number = Math.max(from.number, state.seen) + 1;
  // A secondary that was still catching up has no records of the epochs that begin later.
  const epochs = [...state.epochs.filter(({ start }) => start <= from.index), { number, id, start: from.index }].slice(
    -epochsMax,
  );
  const offset = offsetAbove(from, state, index);
  return {
    ...changed({ ...state, role: 'primary', epochs, offset, index: index + offset, seen: number }),
    ...ownWrites(writes, index + offset),
  };
}

function leave(
  { from, writes }: ReplicationStep & { kind: 'leave' },
  state: ReplicationState,
  index: LogIndex,
): StepEffect | 'conflict' {
  if (state.role !== 'secondary' || !isAt(state, from) || writes.some(({ path }) => isLocal(state, path))) return 'conflict';
  const offset = offsetAbove(from, state, index);
  return {
    ...changed({ ...state, role: 'disabled', epochs: [], offset, index: 0 }),
    ...ownWrites(writes, index + offset),
  };
}

/** Returns the offset with which every index of this cluster is above those that it has received. */
const offsetAbove = (from: Cursor, { offset }: ReplicationState, index: LogIndex): LogIndex =>
  Math.max(offset, from.index + 1 - index);

/** The writes of a step that ends the time as a secondary. */
const ownWrites = (writes: readonly Write[], revision: LogIndex): Pick<StepEffect, 'byPath' | 'valuesWritten'> => ({
  byPath: writes.map((write) => ({ ...write, revision })),
  valuesWritten: { added: writes.length, atLeast: 0 },
});

function supersede(
  { by }: ReplicationStep & { kind: 'supersede' },
  state: ReplicationState,
  index: LogIndex,
): StepEffect | 'conflict' {
  const current = state.epochs.at(-1);
  if (state.role !== 'primary' || current === undefined) return 'conflict';
  if (by.number < current.number || sameEpoch(by, current)) return 'conflict';
  return changed({ ...state, role: 'superseded', index: index + state.offset, seen: Math.max(state.seen, by.number) });
}
