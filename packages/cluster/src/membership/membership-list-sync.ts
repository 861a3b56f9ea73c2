import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { oneAtATime } from '@transitd/event-loop';
import { LogLimit } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import type { ClusterHost } from '../ports/cluster-host.ts';
import { noCommittedMembers } from './membership.ts';
import type { MembershipList } from './membership-list.ts';
import { replaceFile } from './replace-file.ts';
import { judgeList, ListRefused, type ListSender, type ListVerdict, openList, type VerifiedList } from './signed-list.ts';

type ListHost = Pick<ClusterHost, 'directory' | 'log' | 'events' | 'observer'>;

const fileName = 'membership-list.json';

/**
 * Keeps the newest signed membership list that this node has accepted. This node sends the list to members that were away. It also admits
 * the members that the list names, until its own log reaches the index of the list. A list never grants a vote, a quorum or read
 * eligibility.
 */
export class MembershipListSync {
  readonly #host: ListHost;
  readonly #membershipList: MembershipList;
  readonly #clusterId: string;
  readonly #logLimit: LogLimit;
  #newest: VerifiedList | undefined;
  /** Lists are handled one at a time, so that an older one never overwrites a newer one. */
  readonly #exclusively = oneAtATime();

  constructor(host: ListHost, membershipList: MembershipList, clusterId: string) {
    this.#host = host;
    this.#membershipList = membershipList;
    this.#clusterId = clusterId;
    this.#logLimit = new LogLimit({ log: host.log });
  }

  /** The newest signed membership list that this node has accepted; undefined before the first. */
  get newest(): VerifiedList | undefined {
    return this.#newest;
  }

  /** Reads the stored list. A list that cannot be read is logged; the next accepted list replaces it. */
  async open(): Promise<void> {
    const membershipList = this.#membershipList;
    try {
      const stored: unknown = JSON.parse(await readFile(join(this.#host.directory, fileName), 'utf8'));
      const list = openList(stored, membershipList.authorities);
      if (list.clusterId !== this.#clusterId) throw new ListRefused('it belongs to another cluster');
      this.#newest = list;
      membershipList.useSignedList(list);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT' || membershipList.identity === undefined) return;
      this.#host.log.warn(
        { reason: (error as Error).message },
        `${fileName} cannot be used: this node continues without a signed membership list until another member sends one`,
      );
    }
  }

  /**
   * Accepts a list from another node if it is newer than every list accepted before. Stores the list before using it.
   * @throws ListRefused when the list is malformed or not signed by this cluster's authority; errors of the file system
   */
  receive(list: unknown, caller: ListSender): Promise<ListVerdict> {
    return this.#exclusively(() => this.#judge(openList(list, this.#membershipList.authorities), caller));
  }

  /** Stores a list that this node has signed. @throws errors of the file system */
  storeSigned(list: VerifiedList, self: NodeId): Promise<ListVerdict> {
    return this.#exclusively(() => this.#judge(list, { id: self }));
  }

  async #judge(list: VerifiedList, caller: ListSender): Promise<ListVerdict> {
    const [membershipList, clusterId] = [this.#membershipList, this.#clusterId];
    const { newest = noCommittedMembers } = this;
    const verdict = judgeList(list, { clusterId, newest, committed: membershipList.committed, caller });
    if (verdict === 'conflict') this.#reportConflict(list, caller);
    if (verdict !== 'take') return verdict;
    await replaceFile(join(this.#host.directory, fileName), `${JSON.stringify(list.signed)}\n`);
    this.#newest = list;
    if (membershipList.useSignedList(list))
      this.#host.log.info(
        {
          from: caller.id,
          index: list.index,
          ownIndex: membershipList.committed.index,
          members: list.members.map(({ name }) => name),
        },
        'a signed membership list names members that the log of this node does not hold yet: this node admits them to its cluster port',
      );
    this.#host.events.emit('members'); // also for the same members: their certificates or addresses may have changed
    return verdict;
  }

  #reportConflict({ index }: VerifiedList, { id }: ListSender): void {
    this.#logLimit.write(
      'error',
      `conflict ${id}`,
      { from: id, index },
      'refused the membership list of a node: it names other members at an index that this node knows, so two histories exist under this cluster id, for example because disks were rolled back. Find out which nodes hold the right one and stop the others',
    );
    this.#host.observer.membershipConflict();
  }
}
