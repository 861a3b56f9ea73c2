import { changeConf } from '../confchange/change.ts';
import { membersOf } from '../confchange/conf-state.ts';
import { invariant } from '../invariant.ts';
import type { ConfChange, ConfState, Entry, Message } from '../types.ts';
import { encodeConfState } from '../wire/conf-state.ts';
import type { ConfRefusal, ProposeResult } from './contract/raft-core.ts';
import type { RaftState } from './state.ts';

type Removed = Extract<Message, { type: 'Removed' }>;

/** Cluster membership changes (Raft §6, thesis §4): a leader's changes of the configuration, and the notice that this node was removed. */
export class Membership {
  readonly #state: RaftState;

  constructor(state: RaftState) {
    this.#state = state;
  }

  /** Proposes a change. Called only while this node leads and accepts proposals. */
  propose(change: ConfChange): ProposeResult<ConfRefusal> {
    const reason = this.#refusal();
    if (reason !== undefined) return { accepted: false, reason };
    const changed = changeConf(this.#state.confs.newest.conf, change);
    if ('flaw' in changed) return { accepted: false, reason: 'confInvalid' };
    const { index, term } = this.#append(changed.conf);
    return { accepted: true, index, term };
  }

  /** Leaves a joint configuration once it is committed, even if a previous leader proposed it. */
  leaveJoint(): void {
    const { leadership, confs, commitIndex, observe } = this.#state;
    const { index, conf } = confs.newest;
    if (leadership === undefined || !conf.autoLeave || index > commitIndex) return;
    if (commitIndex < leadership.termStart || leadership.transferTo !== undefined) return;
    const changed = changeConf(conf, { kind: 'leave' });
    invariant('conf' in changed, 'a joint configuration can be left', { index });
    observe('joint configuration left');
    this.#append(changed.conf);
  }

  /** Ids are never reused, so a removal notice from a member is valid in any term. */
  onRemoved({ atIndex }: Removed): void {
    const { confs, replicated, isRemoved, id, observe } = this.#state;
    const { conf, index } = confs.newest;
    if (isRemoved || (membersOf(conf).has(id) && index > atIndex)) return;
    observe('removed by notice');
    replicated.noteRemoved(atIndex);
    this.#state.stepDown();
  }

  /** At most one change is uncommitted, and none starts before an entry of the leader's own term is committed (thesis §4.1). */
  #refusal(): ConfRefusal | undefined {
    const { leadership, commitIndex, confs, observe } = this.#state;
    if (commitIndex < (leadership?.termStart ?? Number.POSITIVE_INFINITY)) {
      observe('change refused: no entry of this term is committed');
      return 'confPending';
    }
    if (confs.newest.index <= commitIndex) return undefined;
    observe('change refused: an earlier one is uncommitted');
    return 'confPending';
  }

  #append(conf: ConfState): Entry {
    const { confs, commitIndex, leadership } = this.#state;
    invariant(confs.newest.index <= commitIndex, 'one change at a time', { pending: confs.newest.index, commitIndex });
    const data = encodeConfState(conf);
    leadership?.uncommitted.take(data.length);
    const entry = this.#state.append('conf', data);
    this.#state.configure({ index: entry.index, conf });
    return entry;
  }
}
