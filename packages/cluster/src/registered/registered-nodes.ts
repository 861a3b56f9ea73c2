import type { LogIndex, NodeId } from '@transitd/raft-core';
import type { ClusterAuthority } from '../membership/authority.ts';
import type { NodeIdentity } from '../membership/identity.ts';
import type { ListedNode, Member } from '../membership/membership.ts';
import { readNodeRecord } from './node-record.ts';

/** Where the nodes of a cluster make themselves known. Others may be able to write there. */
export interface NodeRegistry {
  /** For metrics. */
  readonly name: string;
  /** The records of all known nodes, this one included, by their ids. A changed record is another object. */
  readonly nodes: ReadonlyMap<NodeId, Uint8Array>;
  /**
   * Until when every node that has applied the newest commit knows this node, by the monotonic clock; negative infinity if some do not know
   * it.
   */
  readonly registeredUntilMs: number;
  /** Makes this node known by this record; undefined ends that. */
  register(record: Uint8Array | undefined): void;
  /** Reads the index of the newest commit of any node, linearizably. Any failure rejects. */
  newestIndex(): Promise<LogIndex>;
}

type NodeRecords = Pick<NodeRegistry, 'nodes'>;

/** The nodes of a cluster that have made themselves known, as far as their records are authentic. */
export class RegisteredNodes {
  readonly #clusterId: string;
  readonly #records: NodeRecords;
  readonly #read = new Map<NodeId, { readonly record: Uint8Array; readonly node: Member | undefined }>();
  #identity: NodeIdentity | undefined;

  constructor(clusterId: string, records: NodeRecords) {
    this.#clusterId = clusterId;
    this.#records = records;
  }

  /** The certificate of this node and that of the authority of all nodes; undefined while this node is sealed: then no node is known. */
  get identity(): NodeIdentity | undefined {
    return this.#identity;
  }

  set identity(identity: NodeIdentity | undefined) {
    if (identity?.authority !== this.#identity?.authority) this.#read.clear();
    this.#identity = identity;
  }

  requireIdentity(): NodeIdentity {
    if (this.#identity === undefined) throw new Error('this node is sealed, so it has no certificate');
    return this.#identity;
  }

  /** The ids of all records, authentic or not. */
  get ids(): readonly NodeId[] {
    return [...this.#records.nodes.keys()];
  }

  get members(): readonly Member[] {
    return this.ids.flatMap((id) => this.member(id) ?? []);
  }

  member(id: NodeId): Member | undefined {
    const record = this.#records.nodes.get(id);
    if (record === undefined || this.#identity === undefined) {
      this.#read.delete(id);
      return undefined;
    }
    let read = this.#read.get(id);
    if (read?.record !== record) {
      const authority = { certificate: this.#identity.authority };
      read = { record, node: readNodeRecord(record, { nodeId: id, clusterId: this.#clusterId }, authority) };
      this.#read.set(id, read);
    }
    return read.node;
  }

  /**
   * Returns another node that has this name. A node that was killed is known until its lease ends, and has another id after the restart:
   * it has the same cluster address.
   */
  namesakeOf(
    { id, name, clusterAddress }: Pick<Member, 'id' | 'name' | 'clusterAddress'>,
    authority: Pick<ClusterAuthority, 'certificate'>,
  ): Member | undefined {
    const clusterId = this.#clusterId;
    return [...this.#records.nodes]
      .flatMap(([nodeId, record]) => readNodeRecord(record, { nodeId, clusterId }, authority) ?? [])
      .find((one) => one.id !== id && one.name === name && one.clusterAddress !== clusterAddress);
  }

  /** Returns the node with this certificate. @param fingerprint - as in `Member.certificate` */
  memberState(fingerprint: string): ListedNode | undefined {
    const node = this.members.find(({ certificate }) => certificate === fingerprint);
    return node && { id: node.id, memberState: 'member' };
  }
}
