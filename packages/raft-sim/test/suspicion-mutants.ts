import type { Mutant } from '../../../scripts/sim-mutant.ts';

const core = 'raft-core/src/core/';

/** Faults in the rules for a leader that refuses connections (decision 107), found with the third stream of faults. */
export const suspicionMutants: readonly Mutant[] = [
  {
    name: 'a suspecting voter gives its vote before the lease has ended',
    file: `${core}election/election-clock.ts`,
    find: "if (nowMs < this.#trustedUntilMs) return 'a leader was heard';",
    replace: "if (!this.#isSuspected && nowMs < this.#trustedUntilMs) return 'a leader was heard';",
    extra: true,
  },
  {
    name: 'a suspecting candidate does not wait for the lease itself',
    file: `${core}election/election-clock.ts`,
    find: 'const soonMs = this.#mayVoteFromMs(nowMs) + earlyWaitMs',
    replace: 'const soonMs = nowMs + earlyWaitMs',
    extra: true,
  },
  {
    name: 'the wait for a lease has no margin for clock rates',
    file: `${core}contract/limits.ts`,
    find: '(leaseMs: number): number => (leaseMs === 0 ? 0 : outlasting(leaseMs));',
    replace: '(leaseMs: number): number => leaseMs;',
    extra: true,
  },
  {
    name: 'a time-out of this node makes the leader suspected',
    file: `${core}raft.ts`,
    find: '  unreachable(id: NodeId): void {\n',
    replace: '  unreachable(id: NodeId): void {\n    this.#campaign.onRefused(id);\n',
    extra: true,
  },
  {
    name: 'a leader that is heard stays suspected',
    file: `${core}election/election-clock.ts`,
    find: '    this.#isSuspected = false;\n',
    replace: '',
    extra: true,
  },
  {
    name: 'a leader that announced no lease is taken to have none',
    file: `${core}election/election-clock.ts`,
    find: 'isSame ? { ...heard, leaseMs: heard.leaseMs ?? before.leaseMs } : heard;',
    replace: '{ ...heard, leaseMs: heard.leaseMs ?? (isSame ? before.leaseMs : 0) };',
    extra: true,
  },
  {
    name: 'the lease that another leader announced counts',
    file: `${core}election/election-clock.ts`,
    find: 'const isSame = before?.leader === heard.leader && before.term === heard.term;',
    replace: 'const isSame = before !== undefined;',
    extra: true,
  },
  {
    name: 'any peer that refuses makes the leader suspected',
    file: `${core}campaign.ts`,
    find: "role === 'follower' && leader === id && clock.suspect(nowMs",
    replace: "role === 'follower' && clock.suspect(nowMs",
    extra: true,
  },
];
