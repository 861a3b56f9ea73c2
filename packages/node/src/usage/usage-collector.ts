import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { OutsideEngine, Peers, Storage } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import { oneAtATime, TimeSlice } from '@transitd/event-loop';
import { type Logger, type RecordClock, reasonOf } from '@transitd/process';
import {
  acceptsWrites,
  type Condition,
  type Store,
  type Transaction,
  transactionBytesMax,
  type Write,
} from '@transitd/storage-fsm';
import {
  addedUses,
  DamagedRecord,
  type KeyUsage,
  type NearLimit,
  nearLimit,
  type TransitEngine,
  TransitError,
  type UsedKey,
  type VersionUse,
} from '@transitd/transit-engine';
import type { MountedEngines } from '../mounts/mounted-engines.ts';
import { removedPath } from '../mounts/mounts.ts';
import type { UsageLedger } from './usage-ledger.ts';
import {
  type MarksOrigin,
  marksPath,
  mergedAnswers,
  type NodeAnswer,
  readMarks,
  recordedOf,
  type UsageMarks,
  unansweredIn,
  writtenMarks,
} from './usage-marks.ts';
import { type KeyVersionUse, type UsageQuestion, unknownProcess, usageReport } from './usage-wire.ts';

/** Interval at which uses are recorded, in milliseconds: what a node that dies loses at most. */
const recordMs = 60_000;
/** Interval until every node has begun to count, in milliseconds. */
const beginMs = 5000;
/** How long a node may take to answer, in milliseconds. */
const answerMsMax = 2500;
/** How long a node that stops waits until its uses are recorded, in milliseconds. */
const handOverMsMax = 3000;
/** Pause before such a node asks again, in milliseconds: there may be no active node for a moment. */
const handOverPauseMs = 50;
/** Most transactions in a row. A node has more uses in the next one if they do not fit into one batch. */
const roundsMax = 100;
/** Bytes of paths and values in one transaction; the rest of a log entry is for numbers, encryption and the place in a secondary. */
const recordedBytesMax = transactionBytesMax / 2;
/** Most keys that are remembered because they are near their limit. */
const nearMax = 10_000;
/** Attempts to look at uses while nothing is being recorded. */
const looksMax = 5;

/** The uses of a key as all nodes know them. */
export interface CurrentUsage extends UsedKey {
  /** All uses since then are included, in Unix milliseconds; undefined if some node has not begun to count. */
  readonly sinceMs: number | undefined;
  /** Names of the nodes that did not answer: their uses since they last reported are missing. */
  readonly unanswered: readonly string[];
  /** The newest version, if it has made 80 % of what it may. */
  readonly near: NearLimit | undefined;
}

/** The services of an unsealed node, as far as they are used here. */
interface UnsealedNode {
  readonly mounts: Pick<MountedEngines, 'engineOf'>;
}

interface CollectingMember {
  readonly engine: Storage | OutsideEngine;
  readonly peers: Pick<Peers, 'activeMember' | 'calls' | 'membershipList'>;
  readonly role: { readonly isActive: boolean };
  readonly services: { readonly services: UnsealedNode | undefined };
  readonly barrier: { readonly store: Store };
}

interface CollectingHost {
  readonly config: Pick<Config, 'node_id'>;
  readonly clock: Pick<RecordClock, 'utcMs' | 'nowMs'>;
  readonly usage: Pick<UsageLedger, 'endsAs' | 'isKnown' | 'report'>;
  readonly log: Pick<Logger, 'warn'>;
}

/**
 * Collects the uses of keys from all nodes. The active node records them: one record for each key, in one transaction with the marks of the
 * batches that it contains, so that each use counts once whatever is lost or repeated.
 */
export class UsageCollector {
  readonly #member: CollectingMember;
  readonly #host: CollectingHost;
  readonly #exclusively = oneAtATime();
  /** When uses are recorded next, by the monotonic clock. */
  #dueMs = Number.NEGATIVE_INFINITY;
  #wasActive = false;
  /** Keys whose newest version has made 80 % of what it may, by their ids. */
  readonly #near = new Map<string, Pick<KeyVersionUse, 'mount' | 'name'>>();

  constructor(member: CollectingMember, host: CollectingHost) {
    this.#member = member;
    this.#host = host;
  }

  /** Number of keys whose newest version has made 80 % of what it may, as far as they were used since this node is active. */
  get keysNearLimit(): number {
    return this.#member.role.isActive ? this.#near.size : 0;
  }

  /**
   * Records the uses if that is due: once a minute, and when this node becomes the active one. On another node, has the active node note
   * that this process counts. Called every second.
   */
  async tick(): Promise<void> {
    const { isActive } = this.#member.role;
    const nowMs = this.#host.clock.nowMs();
    const isDue = nowMs >= this.#dueMs || (isActive && !this.#wasActive);
    this.#wasActive = isActive;
    if (!isActive) this.#near.clear();
    if (!isDue) return;
    if (!isActive) return this.#introduce(nowMs);
    this.#dueMs = nowMs + recordMs;
    try {
      if (!(await this.record())) this.#dueMs = nowMs + beginMs;
    } catch (error) {
      this.#host.log.warn({ reason: reasonOf(error) }, 'could not record the uses of keys; the next round tries again');
    }
  }

  /** Records soon which processes count: a new member, or one that returned, may serve at once. */
  membersChanged(): void {
    this.#dueMs = Number.NEGATIVE_INFINITY;
  }

  /** Has the active node record now that this process counts: if it dies before the next minute and never returns, its uses are lost. */
  async #introduce(nowMs: number): Promise<void> {
    const { engine, peers } = this.#member;
    if (this.#host.usage.isKnown || peers.activeMember === undefined || !acceptsWrites(engine.replication)) return;
    this.#dueMs = nowMs + beginMs;
    await this.#askToRecord(handOverMsMax).catch(() => undefined); // the next round tries again
  }

  /**
   * Records the uses that the nodes have counted; does nothing unless this node is active. Returns whether every node counts.
   * @throws StoreError
   */
  record(): Promise<boolean> {
    return this.#exclusively(async () => {
      for (let round = 0; round < roundsMax; round++) {
        const recorded = await this.#recordNext();
        if (recorded?.hasMore !== true) return recorded?.isCounting ?? false;
      }
      return true;
    });
  }

  /** Has the uses of this node recorded, because it is about to stop. They are lost if that fails, or takes too long. */
  async handOver(): Promise<void> {
    const { clock, usage, log } = this.#host;
    const endMs = clock.nowMs() + handOverMsMax;
    let reason = 'there is no active node';
    // Uses take two rounds: the active node records them, then tells this node so.
    for (let leftMs = handOverMsMax; leftMs > 0; leftMs = endMs - clock.nowMs()) {
      if (this.#leadsIdle) {
        reason = 'this node leads and is sealed, or serves nothing';
        break;
      }
      const isAsked = await this.#askToRecord(leftMs).catch((error: unknown) => {
        reason = reasonOf(error);
        return false;
      });
      if (usage.endsAs !== unknownProcess && (isAsked || !usage.isKnown)) return;
      await pause(handOverPauseMs, undefined, { ref: false });
    }
    if (usage.endsAs === unknownProcess)
      log.warn({ reason }, 'the uses of keys on this node since the last minute were not recorded');
  }

  /** Whether no node can be the active one, because this node leads and is sealed, or may not serve its records. */
  get #leadsIdle(): boolean {
    const { role, engine } = this.#member;
    return engine.status().ready && !role.isActive;
  }

  /** Has the uses of all nodes recorded. Returns whether there is an active node that did so, or still does. */
  async #askToRecord(msMax: number): Promise<boolean> {
    const { role, peers } = this.#member;
    const active = peers.activeMember;
    const recorded = role.isActive ? this.record() : active && peers.calls.recordUsage(active.id, msMax);
    if (recorded === undefined) return false;
    await Promise.race([recorded, pause(msMax, undefined, { ref: false })]);
    return true;
  }

  /**
   * Returns the uses of a key: those recorded, and those that the nodes have counted since. Call it on the active node.
   * @throws TransitError `not_found`; `too_many_conflicts` if uses are being recorded all the time; StoreError
   */
  async of(engine: Pick<TransitEngine, 'usedKey'>, name: string): Promise<CurrentUsage> {
    const { store } = this.#member.barrier;
    for (let attempt = 0; attempt < looksMax; attempt++) {
      const origin = this.#origin;
      const before = await readMarks(store, origin);
      const { id } = (await engine.usedKey(name)).key.record;
      const answers = await this.#ask(() => ({ kind: 'key', id }));
      const { key, usage } = await engine.usedKey(name);
      const { revision } = await readMarks(store, origin);
      // If uses were recorded meanwhile, they might be missing here, or be in both.
      if (revision === before.revision && key.record.id === id)
        return this.#current({ key, usage }, before.marks, answers, origin);
    }
    throw new TransitError('too_many_conflicts', `the uses of key ${name} are being recorded; try again`);
  }

  #current({ key, usage }: UsedKey, before: UsageMarks, answers: readonly NodeAnswer[], origin: MarksOrigin): CurrentUsage {
    const nowMs = this.#host.clock.utcMs();
    const { marks, uses, gone } = mergedAnswers(before, answers, { ...origin, nowMs });
    if (marks.sinceMs !== before.sinceMs) this.#dueMs = Number.NEGATIVE_INFINITY; // so that this moment is recorded soon
    const all: KeyUsage = addedUses(usage, byVersion(uses), { lowest: key.record.minAvailableVersion, nowMs });
    // The key that was backed up may have been used elsewhere until it was restored.
    const sinceMs = marks.sinceMs && Math.max(marks.sinceMs, all.lostMs, key.record.restore?.timeMs ?? 0);
    const near = nearLimit(key.record, all);
    return { key, usage: all, sinceMs, unanswered: [...unansweredIn(answers), ...gone], near };
  }

  /** Records the next batch of each node; returns undefined if this node may not. */
  async #recordNext(): Promise<{ readonly hasMore: boolean; readonly isCounting: boolean } | undefined> {
    const { role, engine, services, barrier } = this.#member;
    const unsealed = services.services; // a seal may end it at any time
    if (!role.isActive || unsealed === undefined || !acceptsWrites(engine.replication)) return undefined;
    const origin = this.#origin;
    const { marks: before, revision } = await readMarks(barrier.store, origin);
    const answers = await this.#ask((name) => {
      const { process, batch } = recordedOf(before, name);
      return { kind: 'next', process, merged: batch };
    });
    const nowMs = this.#host.clock.utcMs();
    const { marks, uses, lost } = mergedAnswers(before, answers, { ...origin, nowMs });
    const isCounting = marks.sinceMs !== undefined;
    if (uses.length === 0 && isDeepStrictEqual(marks, before)) {
      await this.#findNear(unsealed, []);
      return { hasMore: false, isCounting };
    }
    const { conditions, writes, isWhole } = await addingUses(unsealed, uses);
    // A transaction that is too large would be refused again and again. What is left out is lost, so counting begins again.
    const begun = isWhole || !isCounting ? marks : { ...marks, sinceMs: nowMs };
    const { outcome } = await barrier.store.commit({
      conditions: [{ path: marksPath, revision }, ...conditions],
      writes: [writtenMarks(begun), ...writes],
    });
    if (outcome === 'committed' && before.sinceMs !== undefined && lost !== undefined)
      this.#host.log.warn(
        { reason: lost },
        'uses of keys may be missing, such as those of the last minute of a node that died: counting begins again',
      );
    if (!isWhole && outcome === 'committed')
      this.#host.log.warn({}, 'some uses of keys were lost: the records of uses are too large for one transaction');
    if (outcome === 'committed') await this.#findNear(unsealed, uses);
    const hasMore = outcome === 'conflict' || answers.some(({ answer }) => typeof answer === 'object' && answer.hasMore);
    return { hasMore, isCounting };
  }

  /** Finds keys near their limit, among those that were just used and those that were near before. */
  async #findNear({ mounts }: UnsealedNode, uses: readonly KeyVersionUse[]): Promise<void> {
    const keys = new Map([...this.#near, ...uses.map(({ id, mount, name }) => [id, { mount, name }] as const)]);
    const slice = new TimeSlice();
    for (const [id, { mount, name }] of keys) {
      if (slice.isOver) await slice.next();
      const near = await ofReadable(mounts.engineOf(mount)?.nearLimit(name, id));
      if (near === undefined) this.#near.delete(id);
      else if (!this.#near.has(id) && this.#near.size < nearMax) {
        this.#near.set(id, { mount, name });
        this.#host.log.warn({ key: name, ...near }, 'a key version has made 80 % of the operations that it may: rotate the key');
      }
    }
  }

  /** Asks all members, this node included. */
  #ask(question: (name: string) => UsageQuestion): Promise<readonly NodeAnswer[]> {
    const { engine, peers } = this.#member;
    const ownId = engine.status().nodeId;
    const { config, usage } = this.#host;
    const { node_id: ownName } = config;
    const others = peers.membershipList.members.filter(({ id }) => id !== ownId);
    const own = async (): Promise<NodeAnswer> => ({ name: ownName, answer: await usage.report(question(ownName)) });
    return Promise.all([
      own(),
      ...others.map(async ({ id, name }): Promise<NodeAnswer> => {
        try {
          const answer = await peers.calls.usage(id, question(name), answerMsMax);
          return { name, answer: answer === 'unsupported' ? answer : usageReport.parse(answer) };
        } catch {
          return { name, answer: 'silent' };
        }
      }),
    ]);
  }

  get #origin(): MarksOrigin {
    const { engine } = this.#member;
    return { clusterId: engine.status().clusterId, restoredBy: engine.restoredBy };
  }
}

const byVersion = (uses: readonly KeyVersionUse[]): readonly (readonly [number, VersionUse])[] =>
  uses.map((use) => [use.version, use]);

/** Returns undefined for a key with a damaged record, which must not stop the others: nobody can read its uses. */
const ofReadable = async <T>(found: Promise<T> | undefined): Promise<T | undefined> => {
  try {
    return await found;
  } catch (error) {
    if (error instanceof DamagedRecord) return undefined;
    throw error;
  }
};

/**
 * Returns the part of a transaction that records uses, and whether all of them fit. Those of keys and mounts that no longer exist are
 * dropped.
 */
async function addingUses(
  { mounts }: UnsealedNode,
  uses: readonly KeyVersionUse[],
): Promise<Transaction & { readonly isWhole: boolean }> {
  const byKey = Map.groupBy(uses, ({ id }) => id);
  const conditions: Condition[] = [];
  const writes: Write[] = [];
  const mountIds = new Set<string>();
  const slice = new TimeSlice();
  let bytes = 0;
  let isWhole = true;
  for (const [id, ofKey] of byKey) {
    if (slice.isOver) await slice.next();
    const [{ mount, name } = { mount: '', name: '' }] = ofKey;
    const added = await ofReadable(mounts.engineOf(mount)?.addingUses(name, id, byVersion(ofKey)));
    if (added === undefined) continue;
    bytes += bytesOf(added);
    if (bytes > recordedBytesMax) {
      isWhole = false;
      break;
    }
    mountIds.add(mount);
    conditions.push(...added.conditions);
    writes.push(...added.writes);
  }
  // Nothing may be written for a mount after its removal.
  conditions.push(...Array.from(mountIds, (mount) => ({ path: removedPath(mount), revision: 0 })));
  return { conditions, writes, isWhole };
}

const bytesOf = ({ conditions, writes }: Transaction): number =>
  [...conditions, ...writes].reduce((sum, { path }) => sum + path.length, 0) +
  writes.reduce((sum, { value }) => sum + (value?.length ?? 0), 0);
