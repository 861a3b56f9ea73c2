import { open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Logger, LogLimit } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { syncDirectory } from '@transitd/storage-fsm';
import type { MembershipList } from './membership-list.ts';
import { judgeList, ListRefused, type ListVerdict, openList, type VerifiedList } from './signed-list.ts';

export interface MembershipListSyncParts {
  /** The data directory. */
  readonly directory: string;
  readonly clusterId: string;
  readonly membershipList: MembershipList;
  readonly log: Logger;
  /** The members known to this node may have changed. */
  readonly onMembers: () => void;
  /** Called when a list is refused because this node knows other members at the same index. */
  readonly onConflict: () => void;
}

const fileName = 'membership-list.json';

/** The node that sent a list, with the fingerprint of its certificate if known. */
export interface Caller {
  readonly id: NodeId;
  readonly certificate?: string;
}

/**
 * Keeps the newest signed membership list that this node has accepted. This node sends the list to members that were away. It also admits
 * the members that the list names, until its own log reaches the index of the list. A list never grants a vote, a quorum or read
 * eligibility.
 */
export class MembershipListSync {
  readonly #parts: MembershipListSyncParts;
  readonly #logLimit: LogLimit;
  #newest: VerifiedList | undefined;
  /** Lists are handled one at a time, so that an older one never overwrites a newer one. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: MembershipListSyncParts) {
    this.#parts = parts;
    this.#logLimit = new LogLimit({ log: parts.log, nowMs: () => performance.now() });
  }

  /** The newest signed membership list that this node has accepted; undefined before the first. */
  get newest(): VerifiedList | undefined {
    return this.#newest;
  }

  /** Reads the stored list. A list that cannot be read is logged; the next accepted list replaces it. */
  async open(): Promise<void> {
    const { directory, clusterId, membershipList, log } = this.#parts;
    try {
      const stored: unknown = JSON.parse(await readFile(join(directory, fileName), 'utf8'));
      const list = openList(stored, membershipList.authorities);
      if (list.clusterId !== clusterId) throw new ListRefused('it belongs to another cluster');
      this.#newest = list;
      membershipList.useSignedList(list);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT' || membershipList.identity === undefined) return;
      log.warn(
        { reason: (error as Error).message },
        `${fileName} cannot be used: this node continues without a signed membership list until another member sends one`,
      );
    }
  }

  /**
   * Accepts a list from another node if it is newer than every list accepted before. Stores the list before using it.
   * @throws ListRefused when the list is malformed or not signed by this cluster's authority; errors of the file system
   */
  receive(list: unknown, caller: Caller): Promise<ListVerdict> {
    return this.#oneAtATime(() => this.#judge(openList(list, this.#parts.membershipList.authorities), caller));
  }

  /** Stores a list that this node has signed. @throws errors of the file system */
  storeSigned(list: VerifiedList, self: NodeId): Promise<ListVerdict> {
    return this.#oneAtATime(() => this.#judge(list, { id: self }));
  }

  #oneAtATime<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#last.then(task);
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #judge(list: VerifiedList, caller: Caller): Promise<ListVerdict> {
    const { clusterId, membershipList, directory, onMembers } = this.#parts;
    const verdict = judgeList(list, { clusterId, newest: this.#newest, committed: membershipList.committed, caller });
    if (verdict === 'conflict') this.#reportConflict(list, caller);
    if (verdict !== 'take') return verdict;
    await store(join(directory, fileName), list);
    this.#newest = list;
    if (membershipList.useSignedList(list))
      this.#parts.log.info(
        {
          from: caller.id,
          index: list.index,
          ownIndex: membershipList.committed.index,
          members: list.members.map(({ name }) => name),
        },
        'a signed membership list names members that the log of this node does not hold yet: this node admits them to its cluster port',
      );
    onMembers(); // also for the same members: their certificates or addresses may have changed
    return verdict;
  }

  #reportConflict({ index }: VerifiedList, { id }: Caller): void {
    const { onConflict } = this.#parts;
    this.#logLimit.write(
      'error',
      `conflict ${id}`,
      { from: id, index },
      'refused the membership list of a node: it names other members at an index that this node knows, so two histories exist under this cluster id, for example because disks were rolled back. Find out which nodes hold the right one and stop the others',
    );
    onConflict();
  }
}

/** Replaces the file, atomically and durably. @throws errors of the file system */
async function store(path: string, { signed }: VerifiedList): Promise<void> {
  await rm(`${path}.new`, { force: true });
  const file = await open(`${path}.new`, 'wx', 0o600);
  try {
    await file.writeFile(`${JSON.stringify(signed)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  await syncDirectory(dirname(path));
}
