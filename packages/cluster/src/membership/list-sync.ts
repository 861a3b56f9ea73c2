import { open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Logger, LogLimit } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import { syncDirectory } from '@transitd/storage-fsm';
import type { MembershipList } from './membership-list.ts';
import { type HeldList, judgeList, ListRefused, type ListVerdict, openList } from './signed-list.ts';

export interface MembershipListSyncParts {
  /** The data directory. */
  readonly directory: string;
  readonly clusterId: string;
  readonly membershipList: MembershipList;
  readonly log: Logger;
  /** The members whom this node knows may have changed. */
  readonly onMembers: () => void;
  /** A list was refused that names other members as of an index that is known here. */
  readonly onConflict: () => void;
}

const fileName = 'membership-list.json';

/** The node that shows a list, with the fingerprint of the certificate that it used where that is known. */
export interface Caller {
  readonly id: NodeId;
  readonly certificate?: string;
}

/**
 * Keeps the newest signed membership list that this node has seen, durably: to show it to members that were away, and to admit by it while
 * this node's own log does not reach as far. A list never gives a vote, a quorum or read eligibility.
 */
export class MembershipListSync {
  readonly #parts: MembershipListSyncParts;
  readonly #logLimit: LogLimit;
  #held: HeldList | undefined;
  /** One list at a time, so that an older one is never stored over a newer one. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: MembershipListSyncParts) {
    this.#parts = parts;
    this.#logLimit = new LogLimit({ log: parts.log, nowMs: () => performance.now() });
  }

  /** The newest list that this node has seen. */
  get held(): HeldList | undefined {
    return this.#held;
  }

  /** Reads the list that was kept. One that cannot be read is logged and left for the next one to replace. */
  async open(): Promise<void> {
    const { directory, clusterId, membershipList, log } = this.#parts;
    try {
      const stored: unknown = JSON.parse(await readFile(join(directory, fileName), 'utf8'));
      const list = openList(stored, membershipList.authorities);
      if (list.clusterId !== clusterId) throw new ListRefused('it is of another cluster');
      this.#held = list;
      membershipList.listed(list);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT' || membershipList.identity === undefined) return;
      log.warn({ reason: (error as Error).message }, `the membership list in ${fileName} cannot be used`);
    }
  }

  /**
   * Takes a list that another node shows, if it is newer than all that this node knows: stored before it counts.
   * @throws ListRefused when it is malformed or not signed by this cluster's authority; errors of the file system
   */
  shown(shown: unknown, caller: Caller): Promise<ListVerdict> {
    return this.#inTurn(() => this.#judge(openList(shown, this.#parts.membershipList.authorities), caller));
  }

  /** Keeps a list that this node itself has signed. @throws errors of the file system */
  signed(list: HeldList, self: NodeId): Promise<ListVerdict> {
    return this.#inTurn(() => this.#judge(list, { id: self }));
  }

  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#last.then(task);
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #judge(list: HeldList, caller: Caller): Promise<ListVerdict> {
    const { clusterId, membershipList, directory, onMembers } = this.#parts;
    const verdict = judgeList(list, { clusterId, held: this.#held, committed: membershipList.committed, caller });
    if (verdict === 'conflict') this.#alarm(list, caller);
    if (verdict !== 'take') return verdict;
    await store(join(directory, fileName), list);
    this.#held = list;
    if (membershipList.listed(list))
      this.#parts.log.info(
        {
          from: caller.id,
          index: list.index,
          ownIndex: membershipList.committed.index,
          members: list.members.map(({ name }) => name),
        },
        'a signed membership list names members that the log of this node does not hold yet: they are admitted to the cluster port',
      );
    onMembers(); // also where it names the same members: they may have other certificates or addresses
    return verdict;
  }

  #alarm({ index }: HeldList, { id }: Caller): void {
    const { onConflict } = this.#parts;
    this.#logLimit.write(
      'error',
      `conflict ${id}`,
      { from: id, index },
      'a node showed a membership list that names other members at an index that this node knows: two histories exist under this cluster id, for example because disks were set back. Its list is refused',
    );
    onConflict();
  }
}

/** In one step and durably. @throws errors of the file system */
async function store(path: string, { signed }: HeldList): Promise<void> {
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
