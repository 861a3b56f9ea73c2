import type { Situation as CoreSituation } from '../../../core/situations.ts';
import { holds } from './violation.ts';

/**
 * What cannot happen: a leader appends a second configuration entry only after the first is committed, so of two in one log
 * the first is never truncated. The simulator demands that it is not met; a core without that rule meets it.
 */
const impossible = 'several configuration entries truncated';

/** What the core tells of; the compiler sees to it that none is left out. */
const coreSituations: Record<Exclude<CoreSituation, typeof impossible>, true> = {
  'leader elected in a joint configuration': true,
  'configuration entry truncated': true,
  'vote refused: leader heard': true,
  'vote refused: after start': true,
  'vote refused: longer log': true,
  'split vote is retried soon': true,
  'grant from a lagging node': true,
  'stale answer ignored: session': true,
  'stale acknowledgement ignored': true,
  'stale rejection ignored': true,
  'write acknowledgement clipped': true,
  'window full': true,
  'empty append through a full window': true,
  'rejection skipped a whole term': true,
  'entries read back for a peer': true,
  'read for a peer dropped': true,
  'snapshot offered': true,
  'snapshot answered from the log': true,
  'snapshot overtaken by the log': true,
  'snapshot held by the log': true,
  'snapshot installed': true,
  'snapshot left by an acknowledgement below it': true,
  'lease refused: lapsed': true,
  'lease refused: transfer': true,
  'read round shared': true,
  'reads dropped with the role': true,
  'read forwarded': true,
  'late read answer ignored': true,
  'leader without a quorum stepped down': true,
  'removed leader stepped down': true,
  'vote-less node campaigned': true,
  'joint configuration left': true,
  'second change refused': true,
  'change refused before the own term committed': true,
  'transfer finished its catch-up': true,
  'transfer aborted': true,
  'campaign by transfer': true,
  'sealed node campaigned to hand over': true,
  'sealed leader handed over': true,
  'learner voted': true,
  'committed before the own disk': true,
  'applied ahead of the local disk': true,
  'proposal refused: busy': true,
  'entries left for want of room': true,
  'removed by notice': true,
  'stalled disk refused to campaign': true,
};

/** What is seen from outside. */
const seenSituations = [
  'leader changed',
  'log truncated',
  'message of an earlier run delivered',
  'frame corrupted',
  'frame of an older version read',
  'frame of another version dropped',
  'message of an unknown type dropped',
  'joint configuration entered',
  'learner promoted',
  'voter demoted',
  'wiped node rejoined',
  'lease read served',
  'leader read served',
  'follower read served',
  'log compacted',
  'install crashed half-way',
  'snapshot stream broken',
  'log cut at a torn tail',
  'damage quarantined',
  'disk reserve reached',
  'sync failed',
  'disk hung',
  'unsynced write lost in a crash',
  'vote slot unreadable at a start',
  'process paused',
  'all nodes restarted at once',
  'outcome unknown',
  'proposal superseded',
] as const;

/** Situations that the extra faults bring about. */
export const extraSituations = [
  'process killed',
  'power lost after a kill',
  'clock rate changed',
  'clock stopped',
  'part of a disk hung',
  'snapshot waited for a flush',
  'snapshot and what follows it arrived while the log hung',
  'later term of a stranger ignored',
  'answer to an earlier run delivered',
  'last voter restarted with its removal of the leader uncommitted',
  'one half of a joint configuration cut off',
] as const;

export type Situation = CoreSituation | (typeof extraSituations)[number] | (typeof seenSituations)[number];

/**
 * Situations that the simulator must meet now and then, or its faults are weaker than they look ("sometimes" assertions). One
 * that no seed of a long run meets fails that run.
 */
export const situations: readonly Situation[] = [
  ...Object.keys(coreSituations),
  ...seenSituations,
  ...extraSituations,
] as Situation[];

/** How often each situation was met. */
export class Coverage {
  readonly #counts = new Map<Situation, number>(situations.map((situation) => [situation, 0]));

  met(situation: Situation): void {
    holds('of two configuration entries the first is committed', situation !== impossible, () => ({}));
    this.#counts.set(situation, (this.#counts.get(situation) ?? 0) + 1);
  }

  counts(): ReadonlyMap<Situation, number> {
    return this.#counts;
  }

  add(counts: Iterable<readonly [Situation, number]>): void {
    for (const [situation, count] of counts) this.#counts.set(situation, (this.#counts.get(situation) ?? 0) + count);
  }

  missing(): readonly Situation[] {
    return situations.filter((situation) => this.#counts.get(situation) === 0);
  }
}
