import { LogLimit } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { StorageDamaged } from '@transitd/storage-fsm';
import { type Exclusion, staleDataDirectory } from './membership/exclusion.ts';
import type { MembershipList } from './membership/membership-list.ts';
import type { ClusterHost } from './ports/cluster-host.ts';
import type { IncarnationVerdict } from './transport/incarnations.ts';
import { clusterListenAddress, localAddressFor } from './transport/listen-address.ts';
import type { PeerObserver } from './transport/peer-link.ts';

/** Logs what happens between this node and its peers, and reports the end of its membership and of its process. */
export class PeerLog implements PeerObserver {
  readonly #host: ClusterHost;
  readonly #membershipList: MembershipList;
  readonly #exclusion: Exclusion;
  readonly #logLimit: LogLimit;

  constructor(host: ClusterHost, membershipList: MembershipList, exclusion: Exclusion) {
    this.#host = host;
    this.#membershipList = membershipList;
    this.#exclusion = exclusion;
    this.#logLimit = new LogLimit({ log: host.log });
  }

  removed(): void {
    this.#host.events.emit('removalNotice');
  }

  foreignVersion(peer: NodeId): void {
    this.#host.log.error(this.#named(peer), 'a peer reads no frames of this version: upgrade by one release at a time');
  }

  earlierConnected(peer: NodeId): void {
    this.#host.log.warn(
      this.#named(peer),
      'another process that runs as this node is still connected to a peer, which refuses this one: stop one of them, or wait if this node has just been restarted',
    );
  }

  overtaken(peer: NodeId, by: 'later' | 'other'): void {
    const reason =
      by === 'later' ? 'knows a later incarnation of this node' : 'is connected to another process that runs as this node';
    void this.#exclusion.exclude(new StorageDamaged(`node ${peer} ${reason}: data_dir is ${staleDataDirectory}`));
  }

  refusedIncarnation(peer: NodeId, verdict: Exclude<IncarnationVerdict, 'in order'>): void {
    this.#logLimit.write(
      'warn',
      `incarnation ${peer} ${verdict}`,
      { ...this.#named(peer), verdict },
      'refused a process that runs as a peer: another process runs as that node too, or its disk was rolled back to an earlier state',
    );
  }

  unreachable(peer: NodeId, reason: string): void {
    const address = this.#membershipList.member(peer)?.clusterAddress;
    const from = localAddressFor(clusterListenAddress(this.#host.config).host) ?? 'any address';
    const facts = { ...this.#named(peer), address, from, reason };
    this.#logLimit.write('warn', `unreachable ${peer}`, facts, 'a peer cannot be reached');
  }

  reachable(peer: NodeId, address: string): void {
    this.#logLimit.ended(`unreachable ${peer}`);
    this.#logLimit.write('info', `reachable ${peer} ${address}`, { ...this.#named(peer), address }, 'connected to a peer');
  }

  #named(peer: NodeId): { readonly peer: NodeId; readonly name: string | undefined } {
    return { peer, name: this.#membershipList.member(peer)?.name };
  }
}
