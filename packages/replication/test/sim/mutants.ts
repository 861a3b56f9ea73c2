/** One fault in one place: `find` occurs once in the file, and `replace` takes its place. */
export interface ReplicationMutant {
  readonly name: string;
  /** Path below `packages`. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

const steps = 'storage-fsm/src/store/apply-replication-step.ts';
const acknowledgement = 'replication/src/roles/acknowledgement.ts';
const primarySession = 'replication/src/sessions/primary-session.ts';
const secondarySession = 'replication/src/sessions/secondary-session.ts';
const promotionControl = 'replication/src/roles/promotion-control.ts';
const writeFence = 'replication/src/roles/write-fence.ts';
const states = 'storage-fsm/src/store/replication-state.ts';

/** Faults of replication that the simulation must find. */
export const replicationMutants: readonly ReplicationMutant[] = [
  {
    name: 'a connection outlives its epoch',
    file: 'replication/src/sessions/sender.ts',
    find: ' || !sameEpoch(current, this.#epoch)) return',
    replace: ') return',
  },
  {
    name: 'a gap in the stream is skipped',
    file: 'replication/src/sessions/follower.ts',
    find: "    if (frame.from !== at.index) return { kind: 'reconnect', why: 'gap' };\n",
    replace: '    if (frame.from < 0) return wait;\n',
  },
  {
    name: 'the writes of a conflict are streamed',
    file: 'replication/src/stream/outcome.ts',
    find: 'writes: committed ? replicated',
    replace: 'writes: index > 0 ? replicated',
  },
  {
    name: 'a backup is restored in a replication set as in any cluster',
    file: 'storage-fsm/src/state/entry-applier.ts',
    find: 'mayRestore(step, replication) ? applyRestoreStep',
    replace: 'mayRestore(step, undefined) ? applyRestoreStep',
  },
  {
    name: 'a restore is streamed as an entry without writes',
    file: 'replication/src/stream/outcome.ts',
    find: "    case 'restore':\n      return { kind: 'restart', at: index + after.offset };\n",
    replace: '',
  },
  {
    name: 'a restore ends in a later epoch',
    file: steps,
    find: 'current === undefined || !sameEpoch(current, from)) return',
    replace: 'current === undefined || from.number > current.number) return',
  },
  {
    name: 'a restore leaves the local records under the former keyring',
    file: steps,
    find: 'revision: restoredAt })), ...localWrites(local, state, place)],',
    replace: 'revision: restoredAt }))],',
  },
  {
    name: 'a restore ends although a local record was written meanwhile',
    file: steps,
    find: "> localReadAt || !areUnchanged(local, state, place)) return 'conflict';\n  const restoredAt = index",
    replace: "< 0) return 'conflict';\n  const restoredAt = index",
  },
  {
    name: 'a state is received although a local record was written meanwhile',
    file: steps,
    find: "> localReadAt || !areUnchanged(local, state, place)) return 'conflict';\n  const { restoredAt: _",
    replace: "< 0) return 'conflict';\n  const { restoredAt: _",
  },
  {
    name: 'a whole state hides that it was restored',
    file: 'replication/src/sessions/state-frames.ts',
    find: '...(restoredAt !== undefined && { restoredAt })',
    replace: '...(restoredAt === 0 && { restoredAt })',
  },
  {
    name: 'a cluster that has left the set uses indexes again',
    file: steps,
    find: 'epochs: [], offset, index: 0 }),',
    replace: 'epochs: [], index: 0 }),',
  },
  {
    name: 'a secondary leaves the set at a position that it has left behind',
    file: steps,
    find: "state.role !== 'secondary' || !isAt(state, from) || writes.some",
    replace: "state.role !== 'secondary' || writes.some",
  },
  {
    name: 'a secondary that has diverged may resume',
    file: 'replication/src/sessions/answer-hello.ts',
    find: '  if (!continues(state.epochs, cursor)) return',
    replace: '  if (!continues(state.epochs, cursor) && cursor.index < 0) return',
  },
  {
    name: 'records after the promotion point belong to the new epoch',
    file: states,
    find: 'cursor.index <= next.start',
    replace: 'cursor.index <= next.start + 1000',
  },
  {
    name: 'a primary with the same number is no rival',
    file: 'replication/src/roles/meeting.ts',
    find: "return other.id === own.id ? 'same' : 'superseded';",
    replace: "return 'same';",
  },
  {
    name: 'a promotion does not wait for the fence',
    file: 'replication/src/roles/promotion.ts',
    find: 'const waitMs = hasStopped ? 0',
    replace: 'const waitMs = force ? 0',
  },
  {
    name: 'a promotion does not ask whether the secondary counts',
    file: 'replication/src/roles/promotion.ts',
    find: 'const isUnknown = follows && !isCounted &&',
    replace: 'const isUnknown = follows && !isCounted && from.index < 0 &&',
  },
  {
    name: 'a promotion asks only with a fence whether the secondary counts',
    file: 'replication/src/roles/promotion.ts',
    find: '(isPromotion || fence !== undefined)',
    replace: '(fence !== undefined)',
  },
  {
    name: 'a primary accepts writes after the fence has closed',
    file: 'replication/src/roles/fence.ts',
    find: 'nowMs < oldest + fence.afterMs;',
    replace: 'nowMs < oldest + 2 * fence.afterMs;',
  },
  {
    name: 'a promotion takes the clocks of two clusters to be equal',
    file: 'replication/src/roles/fence.ts',
    find: 'outlasting(fence.afterMs)',
    replace: 'fence.afterMs',
  },
  {
    name: 'a promotion counts as lossless while the primary still writes',
    file: 'replication/src/roles/promotion.ts',
    find: 'if (hasStopped && missing === 0) return',
    replace: 'if (known !== undefined && missing === 0) return',
  },
  {
    name: 'a secondary in the middle of catching up keeps an epoch that it has not reached',
    file: steps,
    find: 'state.epochs.filter(({ start }) => start <= from.index)',
    replace: 'state.epochs.filter(({ start }) => start >= 0)',
  },
  {
    name: 'revisions go back at a promotion',
    file: steps,
    find: 'Math.max(offset, from.index + 1 - index)',
    replace: 'offset',
  },
  {
    name: 'a promotion begins without its first writes',
    file: steps,
    find: 'byPath: writes.map((write) => ({ ...write, revision })),',
    replace: 'byPath: writes.flatMap((write) => (revision < 0 ? [{ ...write, revision }] : [])),',
  },
  {
    name: 'a state is received without the local records for it',
    file: steps,
    find: 'byPath: localWrites(local, state, place)',
    replace: 'byPath: []',
  },
  {
    name: 'the first writes of an epoch are not streamed',
    file: 'replication/src/stream/outcome.ts',
    find: 'const writes = step.writes.map(',
    replace: 'const writes = step.writes.slice(1).map(',
  },
  {
    name: 'key material is used once one of two secondaries has it',
    file: acknowledgement,
    find: 'if (first === undefined) return',
    replace: 'if (first === undefined || missing.length < secondaries.length) return',
  },
  {
    name: 'key material is used while a secondary is absent',
    file: acknowledgement,
    find: 'acknowledged === undefined || acknowledged < index',
    replace: 'acknowledged !== undefined && acknowledged < index',
  },
  {
    name: 'key material is used before the secondary has committed it',
    file: acknowledgement,
    find: 'acknowledged === undefined || acknowledged < index',
    replace: 'acknowledged === undefined || acknowledged < index - 8',
  },
  {
    name: 'a demoted cluster still writes',
    file: states,
    find: "state === undefined || state.role === 'primary' ||",
    replace: "state === undefined || state.role === 'primary' || state.role === 'demoted' ||",
  },
  {
    name: 'a state from the primary replaces local records',
    file: steps,
    find: 'withLive(place.spaces, attempt, state.local)',
    replace: 'withLive(place.spaces, attempt, [])',
  },
  {
    name: 'a restore replaces local records',
    file: steps,
    find: 'withLive(spaces, attempt, state.local)',
    replace: 'withLive(spaces, attempt, [])',
  },
  {
    name: 'the digest forgets the records that a write replaces',
    file: 'storage-fsm/src/state/entry-applier.ts',
    find: 'if (before !== undefined) this.#scope.remove(',
    replace: 'if (before !== undefined && revision % 7 > 0) this.#scope.remove(',
  },
  {
    name: 'a state from before the last change of role is sent',
    file: 'replication/src/sessions/state-frames.ts',
    find: 'if (isSending && isRestored && current !== undefined && stored !== undefined && sameEpoch(current, stored)) return',
    replace: 'if (snapshot !== undefined) return',
  },
  {
    name: 'a state on disk is sent as the present one',
    file: 'storage-fsm/src/state/replicated-snapshot.ts',
    find: 'index: positionOf(state, appliedIndex)',
    replace: 'index: positionOf(state, appliedIndex + 1)',
  },
  {
    name: 'a primary counts the contact with a secondary from the arrival of the answer',
    file: primarySession,
    find: 'cluster.answered(secondary, echoMs, own)',
    replace: 'cluster.answered(secondary, this.#parts.clock.nowMs(), own)',
  },
  {
    name: 'a position of another history counts as acknowledged',
    file: primarySession,
    find: 'at !== undefined && continues(cluster.state()?.epochs ?? [], at) ? at : undefined',
    replace: 'at',
  },
  {
    name: 'a primary answers a hello before it counts the secondary',
    file: primarySession,
    find: '      await registered();\n',
    replace: '      void registered();\n',
  },
  {
    name: 'a primary with a fence does not count a secondary that follows',
    file: primarySession,
    find: 'const canBePromoted = hello.cursor !== undefined;',
    replace: 'const canBePromoted = hello.cursor === undefined;',
  },
  {
    name: 'a primary ignores a proven later epoch',
    file: primarySession,
    find: "    if (verdict === 'proven') await cluster.superseded(epoch);\n",
    replace: '',
  },
  {
    name: 'a primary ignores the later epoch of a hello',
    file: primarySession,
    find: '      await cluster.superseded(answer.by);\n',
    replace: '',
  },
  {
    name: 'a primary that reaches its successor ignores it',
    file: secondarySession,
    find: "if (verdict !== 'proven') {",
    replace: 'if (verdict !== undefined) {',
  },
  {
    name: 'a secondary counts before it has caught up',
    file: secondarySession,
    find: 'own.index < first.index',
    replace: 'own.index < 0',
  },
  {
    name: 'a secondary counts once it has what its primary had before it waited for it',
    file: secondarySession,
    find: '    this.#firstHeard = undefined;\n',
    replace: '',
  },
  {
    name: 'a secondary answers heartbeats while a promotion waits',
    file: secondarySession,
    find: '    if (!cluster.mayAnswer()) return;\n',
    replace: '',
  },
  {
    name: 'a promotion takes the silence of its node for that of its cluster',
    file: promotionControl,
    find: 'if (term !== this.#activeTerm) this',
    replace: 'if (this.#activeSinceMs === Number.POSITIVE_INFINITY) this',
  },
  {
    name: 'a secondary answers heartbeats again before its promotion is committed',
    file: promotionControl,
    find: '        attempt += 1;\n',
    replace: '        attempt += 1;\n        secondary.isPromoting = false;\n',
  },
  {
    name: 'a secondary forgets that it answered a heartbeat',
    file: secondarySession,
    find: '    cluster.answered(clock.nowMs());\n',
    replace: '',
  },
  {
    name: 'a heartbeat is answered with the position of the primary',
    file: secondarySession,
    find: 'at: cursorOf(state), echoMs: sentMs',
    replace: 'at, echoMs: sentMs',
  },
  {
    name: 'the fence counts a contact from before the machine was suspended',
    file: writeFence,
    find: 'sinceMs !== undefined && sinceMs > storage.clockJumpedMs()',
    replace: 'sinceMs !== undefined',
  },
  {
    name: 'the fence knows the secondaries of an earlier term',
    file: writeFence,
    find: 'registry.isRead && this.#readInTerm === storage.driver.status().term',
    replace: 'registry.isRead',
  },
  {
    name: 'the fence is open before the secondaries are read',
    file: writeFence,
    find: 'registry.isRead && this.#readInTerm === storage.driver.status().term',
    replace: 'this.#clock.nowMs() > 0',
  },
  {
    name: 'the fence reads the secondaries once',
    file: writeFence,
    find: '    if (this.#readInTerm === term && this.#registry.isRead) return;\n    await',
    replace: '    if (!this.#registry.isRead) await',
  },
  {
    name: 'the fence keeps the contacts of an earlier epoch',
    file: writeFence,
    find: 'this.#contacts === undefined || !sameEpoch(this.#contacts.epoch, epoch)',
    replace: 'this.#contacts === undefined',
  },
  {
    name: 'the fence does not compare times',
    file: writeFence,
    find: 'isDatable && mayAccept(fence, { contacts, secondaries, nowMs: time })',
    replace: 'isDatable && mayAccept(undefined, { contacts, secondaries, nowMs: time })',
  },
];
