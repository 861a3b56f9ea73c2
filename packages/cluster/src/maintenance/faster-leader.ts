import type { Logger } from '@transitd/process';
import type { Driver, NodeId } from '@transitd/raft-core';
import type { CommitResult } from '@transitd/storage-fsm';
import type { MembershipList } from '../membership/membership-list.ts';
import type { Standbys } from '../standbys/standbys.ts';

/** Factor by which the other disk must be faster than the leader's disk. */
const timesFaster = 3;
/** How long, at least, the other disk must stay faster by this factor, without interruption. */
const fasterForMsMin = 30_000;
/** Minimum time between two transfers, including a transfer that made this node the leader. */
const betweenTransfersMs = 10 * 60_000;
/** A leader whose writes take at most this long stays: a transfer refuses writes for a moment, which would cost more than it saves. */
const fastEnoughMs = 20;

/** Maximum age of a report if two report intervals are shorter. An older report does not show the present state of a disk. */
const reportAgeMsMin = 10_000;

/** A voter that could lead now. */
export interface Candidate {
  readonly id: NodeId;
  /** Median time of recent writes to the voter's log, in ms; infinite if the voter has not reported one. */
  readonly writeMs: number;
  /** How long ago the voter reported it. */
  readonly reportedAgoMs: number;
}

/**
 * Decides when a leader with a slow disk transfers leadership to a voter with a faster one. Every write waits for the leader's event loop.
 * It also waits for the leader's disk where only one other voter answers. All times are readings of one monotonic clock, in ms.
 */
export class FasterLeader {
  readonly #reportAgeMsMax: number;
  readonly #fasterForMs: number;
  /** For each voter, the time since which its disk has been faster than this node's by `timesFaster`. */
  #fasterSinceMs = new Map<NodeId, number>();
  #transferredMs = Number.NEGATIVE_INFINITY;

  /**
   * @param reportIntervalMs - interval of the voters' reports. One report may be lost, and a single report never decides: the other disk
   * must stay faster for two intervals.
   */
  constructor({ reportIntervalMs }: { readonly reportIntervalMs: number }) {
    this.#reportAgeMsMax = Math.max(reportAgeMsMin, 2 * reportIntervalMs);
    this.#fasterForMs = Math.max(fasterForMsMin, 2 * reportIntervalMs);
  }

  /** Call this when this node becomes the leader. @param byTransfer - whether the former leader transferred leadership to it */
  leadershipBegins({ nowMs, byTransfer }: { readonly nowMs: number; readonly byTransfer: boolean }): void {
    this.#fasterSinceMs.clear();
    if (byTransfer) this.#transferredMs = nowMs;
  }

  /**
   * Returns the voter to transfer leadership to; undefined for none. Call it every few seconds while this node leads.
   * @param writeMs - median time of recent writes to this node's log; 0 if nothing was written
   */
  successor({
    nowMs,
    writeMs,
    candidates,
  }: {
    readonly nowMs: number;
    readonly writeMs: number;
    readonly candidates: readonly Candidate[];
  }): NodeId | undefined {
    const before = this.#fasterSinceMs;
    const isFaster = ({ writeMs: candidateMs, reportedAgoMs }: Candidate): boolean =>
      timesFaster * candidateMs <= writeMs && reportedAgoMs <= this.#reportAgeMsMax;
    const faster = writeMs > fastEnoughMs ? candidates.filter(isFaster) : [];
    this.#fasterSinceMs = new Map(faster.map(({ id }) => [id, before.get(id) ?? nowMs]));
    if (nowMs < this.#transferredMs + betweenTransfersMs) return undefined;
    const lasting = faster.filter(({ id }) => (this.#fasterSinceMs.get(id) ?? nowMs) <= nowMs - this.#fasterForMs);
    return lasting.sort((a, b) => a.writeMs - b.writeMs || a.id - b.id)[0]?.id;
  }

  /** Records that a transfer was started, whether or not it succeeds. */
  transferStarted(nowMs: number): void {
    this.#transferredMs = nowMs;
    this.#fasterSinceMs.clear();
  }
}

interface FasterLeaderTransferOptions {
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
