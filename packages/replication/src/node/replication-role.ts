import { randomBytes } from 'node:crypto';
import type { NodeRole, Storage } from '@transitd/cluster';
import { type CommitResult, type ReplicationState, type ReplicationStep, StoreError } from '@transitd/storage-fsm';
import { ReplicationError } from '../replication-error.ts';

/** The role of this cluster in replication, as this node has applied it, and the commit of the steps that change it. */
export class ReplicationRole {
  readonly #storage: Pick<Storage, 'machine' | 'driver' | 'replica'>;
  readonly #node: Pick<NodeRole, 'isActive'>;

  constructor(storage: Pick<Storage, 'machine' | 'driver' | 'replica'>, node: Pick<NodeRole, 'isActive'>) {
    this.#storage = storage;
    this.#node = node;
  }

  /** This node is the active one of its cluster. */
  get isActive(): boolean {
    return this.#node.isActive;
  }

  /** The state of replication; undefined if this cluster has never taken part in it. */
  get state(): ReplicationState | undefined {
    return this.#storage.machine.replication;
  }

  /** The state, for the active node; undefined on any other one. */
  get activeState(): ReplicationState | undefined {
    return this.isActive ? this.state : undefined;
  }

  get term(): number {
    return this.#storage.driver.status().term;
  }

  /** Checks that this node is the active one. @throws StoreError `not_leader` */
  requireActive(): void {
    if (!this.isActive) throw new StoreError('not_leader', 'this node is not the active one');
  }

  /** Returns the state of a cluster in this role. @throws as {@link requireActive} does; ReplicationError `wrong_mode` */
  require(role: ReplicationState['role']): ReplicationState {
    this.requireActive();
    const { state } = this;
    if (state?.role !== role) throw new ReplicationError('wrong_mode', `this cluster is not a ${role}`);
    return state;
  }

  /** Commits one step as one log entry. `conflict`: the state does not allow the step, and is unchanged. @throws StoreError */
  async commit(replication: ReplicationStep): Promise<CommitResult['outcome']> {
    return (await this.#storage.replica.commit({ replication })).outcome;
  }
}

/** Returns a random id of a set or an epoch. */
export const newId = (): string => randomBytes(16).toString('hex');
