import type { CoverageEvent as CoreCoverageEvent } from '@transitd/raft-core';
import { holds } from './violation.ts';

/**
 * This event cannot happen: a leader appends a second configuration entry only after the first is committed, so a truncation never removes
 * two of them. The simulator fails if the event happens, as it does in a core without that rule.
 */
const impossible = 'several configuration entries truncated';

/** The events that the core reports; the compiler checks that the list is complete. */
const coreEvents: Record<Exclude<CoreCoverageEvent, typeof impossible>, true> = {
  'leader elected in a joint configuration': true,
  'configuration entry truncated': true,
  'vote refused: a leader was heard': true,
  'vote refused: the node has just started': true,
  'vote refused: the voter has a longer log': true,
  'a split vote was retried early': true,
  'leader suspected': true,
  'vote given early': true,
  'a lagging node granted its vote': true,
  'answer of an earlier session ignored': true,
  'stale acknowledgement ignored': true,
  'stale rejection ignored': true,
  'acknowledgement of a superseded write limited': true,
  'window full': true,
  'empty Append sent through a full window': true,
  'a rejection skipped a whole term': true,
  'old entries read for a peer': true,
  'old entries for a peer dropped after the read': true,
  'snapshot offered': true,
  'snapshot answered from the log': true,
  'snapshot overtaken by the log': true,
  'snapshot held by the log': true,
  'snapshot installed': true,
  'an acknowledgement below the snapshot ended its offer': true,
  'lease refused: it has expired': true,
  'lease refused: leadership is being transferred': true,
  'several reads shared a round': true,
  'reads dropped because the role changed': true,
  'read forwarded': true,
  'late read answer ignored': true,
  'leader without a quorum stepped down': true,
  'removed leader stepped down': true,
  'node without a vote campaigned': true,
  'joint configuration left': true,
  'change refused: an earlier one is uncommitted': true,
  'change refused: no entry of this term is committed': true,
  'transfer finished its catch-up': true,
  'transfer aborted': true,
  'a transfer started a campaign': true,
  'sealed node campaigned to pass its log on': true,
  'sealed leader transferred leadership': true,
  'learner voted': true,
  'entries committed before the local disk had them': true,
  'entries applied before the local disk had them': true,
  'proposal refused: busy': true,
  'entries not accepted: no room': true,
  'removed by notice': true,
  'node with a stalled disk did not campaign': true,
};

/** The events that the simulator itself observes, outside of the core. */
const seenEvents = [
  'leader changed',
  'log truncated',
  'message to an earlier incarnation delivered',
  'frame corrupted',
  'frame of an older version read',
  'frame of another version dropped',
  'message of an unknown type dropped',
  'joint configuration entered',
  'learner promoted',
  'voter demoted',
  'wiped node rejoined',
  'lease read served',
  'lease reported to other threads',
  'leader read served',
  'follower read served',
  'log compacted',
  'install crashed half-way',
  'snapshot stream broken',
  'torn end of a log cut off',
  'damage quarantined',
  'disk reserve reached',
  'sync failed',
  'disk hung',
  'unsynced write lost in a crash',
  'a start found an unreadable vote slot',
  'process paused',
  'all nodes restarted at once',
  'outcome unknown',
  'proposal superseded',
] as const;

/** The events that the extra faults cause. */
const extraCoverageEvents = [
  'process killed',
  'power lost after a kill',
  'clock rate changed',
  'clock stopped',
  'part of a disk hung',
  'snapshot waited for a flush',
  'snapshot and the next entries arrived while the log hung',
  'later term from a non-member ignored',
  'answer to an earlier incarnation delivered',
  'last voter restarted with its removal of the leader uncommitted',
  'one half of a joint configuration cut off',
  'leader killed, connections refused',
  'live leader reset and refused',
  'leader reset on one side',
  'follower reset while the leader is silent',
  'refused leader heard again',
  'sync failed, pages reported as clean',
  'lease refused: a clock jumped',
  'stalled inside a turn',
  'ended inside a turn',
  'entry applied slowly',
  'connection stalled',
  'connection ended with frames under way',
  'frame of a replaced connection dropped',
  'entry confirmed',
] as const;

export type CoverageEvent = CoreCoverageEvent | (typeof extraCoverageEvents)[number] | (typeof seenEvents)[number];

/**
 * Events that the simulator must meet now and then; otherwise its faults are weaker than they look ("sometimes" assertions). A long run
 * fails if no seed meets one of them.
 */
export const coverageEvents: readonly CoverageEvent[] = [
  ...Object.keys(coreEvents),
  ...seenEvents,
  ...extraCoverageEvents,
] as CoverageEvent[];

/** Counts how often each event was met. */
export class Coverage {
  readonly #counts = new Map<CoverageEvent, number>(coverageEvents.map((event) => [event, 0]));

  met(event: CoverageEvent): void {
    holds('at most one configuration entry is uncommitted', event !== impossible, () => ({}));
    this.#counts.set(event, (this.#counts.get(event) ?? 0) + 1);
  }

  counts(): ReadonlyMap<CoverageEvent, number> {
    return this.#counts;
  }

  add(counts: Iterable<readonly [CoverageEvent, number]>): void {
    for (const [event, count] of counts) this.#counts.set(event, (this.#counts.get(event) ?? 0) + count);
  }

  missing(): readonly CoverageEvent[] {
    return coverageEvents.filter((event) => this.#counts.get(event) === 0);
  }
}
