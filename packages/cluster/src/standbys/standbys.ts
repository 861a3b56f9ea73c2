import type { LogIndex, NodeId, Term } from '@transitd/raft-core';

/** What a node says of itself in an echo. */
export interface StandbyNews {
  readonly appliedIndex: LogIndex;
  /** It may answer requests from its own replica, as long as echoes are answered. */
  readonly serves: boolean;
  readonly sealed: boolean;
  /** Median time that a write to its log took in the last seconds, in ms. */
  readonly writeMs?: number | undefined;
  /** It reads member lists that name authorities: without all members that do, no rotation begins. */
  readonly readsAuthorities?: boolean | undefined;
  readonly version: string;
  readonly hostname: string;
  readonly apiAddress: string;
  readonly clusterAddress: string;
  /** Fingerprint of the certificate that it showed. */
  readonly certificate: string;
}

export interface StandbysOptions {
  /** For how long an answered echo lets a node serve, by that node's clock. */
  readonly servesForMs: number;
  readonly nowMs: () => number;
  /** Asks a node to say when it has applied `index`, or more; answers with the index reached. Any failure rejects. */
  readonly ask: (id: NodeId, index: LogIndex) => Promise<LogIndex>;
  /** Resolves after about that time. */
  readonly pause: (ms: number) => Promise<void>;
}

interface Standby extends StandbyNews {
  readonly heardMs: number;
  /** When an echo that lets it serve was answered last. */
  readonly servingMs: number | undefined;
}

/**
 * Rates of clocks differ by less than a tenth from the true one, as the leader lease assumes: a standby's at 0.9 serves for 1/0.9 of its time,
 * and this node's at 1.1 counts 1.1 times that, 1.23 in all.
 */
const clockRateMargin = 1.25;
const askAgainMs = 50;

/**
 * What the active node knows of the others, to say when none of them serves an older state any more (decisions 49 and 50): each has
 * confirmed to have applied it, or the time for which it was let serve has run out.
 */
export class Standbys {
  readonly #options: StandbysOptions;
  readonly #known = new Map<NodeId, Standby>();
  /** What was confirmed by nodes that have not echoed in this term. */
  readonly #confirmedUnheard = new Map<NodeId, LogIndex>();
  readonly #asking = new Map<NodeId, Promise<void>>();
  /** Highest index that somebody waits for. */
  #wanted: LogIndex = 0;
  /** Whoever served under the leader before may do so for as long again, unknown ones too. */
  #termStartMs = Number.NEGATIVE_INFINITY;
  #others: () => readonly NodeId[] = () => [];
  /** Whom this node follows or followed last. */
  #followed: { readonly id: NodeId; readonly term: Term; readonly sinceMs: number } | undefined;
  /** Was the last active node before this one for so long that no echo lets it serve, and has lost its lease. */
  #former: NodeId | undefined;

  constructor(options: StandbysOptions) {
    this.#options = options;
  }

  /** Another node leads; what it had been let serve before, as a standby, runs out from now on at the latest. */
  follows(leader: NodeId, term: Term): void {
    if (this.#followed?.term === term) return;
    this.#followed = { id: leader, term, sinceMs: this.#options.nowMs() };
  }

  /**
   * A term of this node as leader begins. The leader before it had heartbeats answered by nobody since it began to lead, so a leader that
   * died is not waited for, however many elections were lost since: only a leader that committed an entry of its term answers heartbeats,
   * and this node's log would hold that entry.
   * @param others - the members but for this one, and those removed of late
   * @param termBefore - the term of the last entry before the first of this node's own term
   */
  leads(others: () => readonly NodeId[], termBefore: Term): void {
    const followed = this.#followed;
    const isNewest = followed !== undefined && termBefore <= followed.term;
    const isOver = isNewest && followed.sinceMs + this.#servesAtMostMs < this.#options.nowMs();
    this.#former = isOver ? followed.id : undefined;
    this.#known.clear();
    this.#confirmedUnheard.clear();
    this.#wanted = 0;
    this.#termStartMs = this.#options.nowMs();
    this.#others = others;
  }

  /** An echo is about to be answered. */
  heard(id: NodeId, news: StandbyNews): void {
    const heardMs = this.#options.nowMs();
    const servingMs = news.serves ? heardMs : this.#known.get(id)?.servingMs;
    this.#known.set(id, { ...news, heardMs, servingMs });
  }

  /** The newest news of a node in this term, and how long ago it was. */
  news(id: NodeId): (StandbyNews & { readonly agoMs: number }) | undefined {
    const known = this.#known.get(id);
    return known && { ...known, agoMs: this.#options.nowMs() - known.heardMs };
  }

  /** Resolves when nobody serves a state from before `index` any more. */
  async confirmed(index: LogIndex): Promise<void> {
    this.#wanted = Math.max(this.#wanted, index);
    // Whoever was removed meanwhile may still serve for a while.
    const ids = new Set([...this.#others(), ...this.#known.keys()]);
    await Promise.all([...ids].map((id) => this.#confirmedBy(id, index)));
  }

  /** Resolves when a node whose echoes are not answered any more can serve nothing: what was let serve last has run out. */
  async silenced(id: NodeId): Promise<void> {
    while (this.#mayServe(id)) await this.#options.pause(this.#servesUntilMs(id) - this.#options.nowMs() + 1);
  }

  /** What an echo is answered from now on includes the entry: only what was let serve before has to be waited for. */
  async #confirmedBy(id: NodeId, index: LogIndex): Promise<void> {
    const { nowMs, pause } = this.#options;
    const untilMs = this.#servesUntilMs(id);
    while (nowMs() <= untilMs && this.#appliedBy(id) < index) {
      let asking = this.#asking.get(id);
      if (asking === undefined) {
        asking = this.#ask(id).finally(() => this.#asking.delete(id));
        this.#asking.set(id, asking);
      }
      await Promise.race([asking, pause(untilMs - nowMs() + 1)]);
    }
  }

  /** One question stands for all that wait: those that come meanwhile are asked with the next one. */
  async #ask(id: NodeId): Promise<void> {
    const { ask, pause } = this.#options;
    const applied = await ask(id, this.#wanted).catch(() => undefined);
    if (applied === undefined) return pause(askAgainMs);
    const known = this.#known.get(id);
    if (known !== undefined) this.#known.set(id, { ...known, appliedIndex: Math.max(known.appliedIndex, applied) });
    else this.#confirmedUnheard.set(id, applied);
  }

  #appliedBy(id: NodeId): LogIndex {
    return Math.max(this.#known.get(id)?.appliedIndex ?? 0, this.#confirmedUnheard.get(id) ?? 0);
  }

  #mayServe(id: NodeId): boolean {
    return this.#options.nowMs() <= this.#servesUntilMs(id);
  }

  #servesUntilMs(id: NodeId): number {
    const letBeforeMs = id === this.#former ? Number.NEGATIVE_INFINITY : this.#termStartMs;
    return Math.max(letBeforeMs, this.#known.get(id)?.servingMs ?? Number.NEGATIVE_INFINITY) + this.#servesAtMostMs;
  }

  get #servesAtMostMs(): number {
    return clockRateMargin * this.#options.servesForMs;
  }
}
