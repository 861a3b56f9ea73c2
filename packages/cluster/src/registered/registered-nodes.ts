import type { NodeId } from '@transitd/raft-core';
import type { ClusterAuthority } from '../membership/authority.ts';
import type { ListedNode, Member } from '../membership/membership.ts';
import { readNodeRecord } from './node-record.ts';

export interface RegisteredNodesParts {
  readonly clusterId: string;
  /** The records of all known nodes, this one included, by their ids. A changed record is another object. */
  readonly records: () => ReadonlyMap<NodeId, Uint8Array>;
}

/** The nodes of a cluster that have made themselves known, as far as their records are authentic. */
export class RegisteredNodes {
  readonly #parts: RegisteredNodesParts;
  readonly #read = new Map<NodeId, { readonly record: Uint8Array; readonly node: Member | undefined }>();
  #authority: Pick<ClusterAuthority, 'certificate'> | undefined;

  constructor(parts: RegisteredNodesParts) {
    this.#parts = parts;
  }

  /** The authority of the nodes' certificates; undefined while this node is sealed. Without it, no node is known. */
  set authority(authority: Pick<ClusterAuthority, 'certificate'> | undefined) {
    if (authority?.certificate === this.#authority?.certificate) return;
    this.#authority = authority;
    this.#read.clear();
  }

  /** The ids of all records, authentic or not. */
  get ids(): readonly NodeId[] {
    return [...this.#parts.records().keys()];
  }

  get members(): readonly Member[] {
    return this.ids.flatMap((id) => this.member(id) ?? []);
  }

  member(id: NodeId): Member | undefined {
    const record = this.#parts.records().get(id);
    if (record === undefined || this.#authority === undefined) {
      this.#read.delete(id);
      return undefined;
    }
    let read = this.#read.get(id);
    if (read?.record !== record) {
      read = { record, node: readNodeRecord(record, { nodeId: id, clusterId: this.#parts.clusterId }, this.#authority) };
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
    const { clusterId, records } = this.#parts;
    return [...records()]
      .flatMap(([nodeId, record]) => readNodeRecord(record, { nodeId, clusterId }, authority) ?? [])
      .find((one) => one.id !== id && one.name === name && one.clusterAddress !== clusterAddress);
  }

  /** Returns the node with this certificate. @param fingerprint - as in `Member.certificate` */
  listed(fingerprint: string): ListedNode | undefined {
    const node = this.members.find(({ certificate }) => certificate === fingerprint);
    return node && { id: node.id, memberState: 'member' };
  }
}
