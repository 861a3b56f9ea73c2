import type { Logger } from '@transitd/process';
import type { Driver } from '@transitd/raft-core';
import type { CommitResult } from '@transitd/storage-fsm';
import type { MembershipList } from '../membership/membership-list.ts';
import { FasterLeader } from '../standbys/faster-leader.ts';
import type { Standbys } from '../standbys/standbys.ts';

export interface FasterLeaderTransferOptions {
  readonly driver: Pick<Driver<CommitResult>, 'consensus' | 'peers' | 'transfer' | 'writeMs'>;
  readonly membershipList: Pick<MembershipList, 'member'>;
  readonly standbys: Pick<Standbys, 'report'>;
  readonly log: Logger;
  /** Interval of the heartbeats, in which standbys report the write times of their disks. */
  readonly heartbeatIntervalMs: number;
}

/** Transfers leadership to a voter whose disk has been much faster than this node's for some time. */
export class FasterLeaderTransfer {
  readonly #options: FasterLeaderTransferOptions;
  readonly #decision: FasterLeader;

  constructor(options: FasterLeaderTransferOptions) {
    this.#options = options;
    this.#decision = new FasterLeader({ reportIntervalMs: options.heartbeatIntervalMs });
  }

  /** Call this when this node becomes the leader. */
  leadershipBegins(): void {
    const { byTransfer } = this.#options.driver.consensus();
    this.#decision.leadershipBegins({ nowMs: performance.now(), byTransfer });
  }

  /** Starts a transfer if one is due. Call it every few seconds while this node is active. */
  transferIfDue(): void {
    const { driver, membershipList, standbys, log } = this.#options;
    const { voters } = driver.consensus().conf;
    const able = driver.peers().filter(({ id, fit, active }) => fit && active && voters.includes(id));
    const candidates = able.map(({ id }) => {
      const { writeMs = Number.POSITIVE_INFINITY, agoMs: reportedAgoMs = 0 } = standbys.report(id) ?? {};
      return { id, writeMs, reportedAgoMs };
    });
    const { writeMs = 0 } = driver;
    const nowMs = performance.now();
    const successor = this.#decision.successor({ nowMs, writeMs, candidates });
    if (successor === undefined) return;
    this.#decision.transferStarted(nowMs);
    const to = membershipList.member(successor)?.name;
    const theirWriteMs = candidates.find(({ id }) => id === successor)?.writeMs;
    log.warn(
      { to, writeMs, theirWriteMs },
      'leadership is transferred: writes to the disk of this node take much longer than on the new leader',
    );
    driver.transfer(successor, ({ kind }) => {
      if (kind !== 'resigned') log.warn({ to }, 'leadership was not transferred: that node did not become the leader');
    });
  }
}
