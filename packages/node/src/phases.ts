import { StoreError } from '@transitd/storage-fsm';
import { type EtcdMember, openEtcdMember } from './etcd-member.ts';
import type { Joining } from './join/joining.ts';
import type { MemberHost } from './member.ts';
import { openRaftMember, type RaftMember } from './raft-member.ts';
import { unknownProcess } from './usage/usage-wire.ts';

/** This node as a member of a cluster, by the engine that keeps the records. */
export type Member = RaftMember | EtcdMember;

/** How far this node is on its way into a cluster. */
export type Phase =
  | { readonly kind: 'noCluster' }
  /** It is joining a cluster, or waits for the shares of its seal. */
  | { readonly kind: 'joining'; readonly joining: Joining }
  | { readonly kind: 'member'; readonly member: Member };

/** The phase of this node, and the steps from one to the next. */
export class Phases {
  readonly #host: Omit<MemberHost, 'stopping'>;
  readonly #stopping = new AbortController();
  #present: Phase = { kind: 'noCluster' };

  constructor(host: Omit<MemberHost, 'stopping'>) {
    this.#host = host;
  }

  get present(): Phase {
    return this.#present;
  }

  /** Undefined until this node is a member. */
  get member(): Member | undefined {
    return this.#present.kind === 'member' ? this.#present.member : undefined;
  }

  /** This node is joining a cluster; a former attempt ends. A member joins no other cluster. */
  join(joining: Joining): void {
    this.leave();
    if (this.#present.kind === 'noCluster') this.#present = { kind: 'joining', joining };
  }

  /** Ends the attempt to join, if there is one. */
  leave(): void {
    if (this.#present.kind !== 'joining') return;
    this.#present.joining.close();
    this.#present = { kind: 'noCluster' };
  }

  /**
   * Opens this node as a member, over the node in the data directory or over etcd. A failure closes everything that was opened.
   * @param completed - the join that made this node a member; any other one ends
   * @throws StartError, StorageDamaged, StorageFailed; StoreError `stopped`
   */
  async open(completed?: Joining): Promise<Member> {
    const host = { ...this.#host, stopping: this.#stopping.signal };
    const { storage } = host.config;
    const resources = new AsyncDisposableStack();
    try {
      host.stopping.throwIfAborted();
      const member =
        storage.type === 'etcd' ? await openEtcdMember(host, storage, resources) : await openRaftMember(host, resources);
      await host.directory.noteUsage(unknownProcess); // from here on, this process may count uses
      host.stopping.throwIfAborted();
      if (this.#present.kind === 'joining' && this.#present.joining !== completed) this.#present.joining.close();
      this.#present = { kind: 'member', member };
      return member;
    } catch (error) {
      await resources.disposeAsync().catch(() => undefined); // the first error is the cause
      throw error;
    }
  }

  /** Returns this node as the member of a cluster that is to be initialized; creates that cluster if the node is no member. */
  async found(): Promise<Member> {
    if (this.member !== undefined) return this.member;
    const { directory } = this.#host;
    if (!(await directory.holdsNode())) await directory.bootstrapCluster();
    this.leave(); // the node in the directory must not be admitted to another cluster, even if it cannot be opened now
    return this.open();
  }

  /** Closes the member; makes an opening in progress fail, and ends a join. @throws StorageFailed */
  async close(): Promise<void> {
    if (this.#present.kind === 'member') return this.#present.member.close();
    this.#stopping.abort(new StoreError('stopped', 'this node is stopping'));
    if (this.#present.kind === 'joining') this.#present.joining.close();
  }
}
