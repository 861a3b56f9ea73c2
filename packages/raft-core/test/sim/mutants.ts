import type { Mutant } from '../../../../scripts/sim-mutant.ts';

const core = 'src/core/';

/** Faults that the simulator must find. A patch that does not apply any more is a failure too: the rule has moved. */
export const mutants: readonly Mutant[] = [
  // Commit and acknowledgement (§5.3, §5.4.2)
  {
    name: 'an entry of an earlier term is committed by counting',
    file: `${core}state.ts`,
    find: 'if (to <= this.commitIndex || this.log.termAt(to) !== this.term) return;',
    replace: 'if (to <= this.commitIndex) return;',
  },
  {
    name: 'entries are acknowledged before they are durable',
    file: `${core}follower.ts`,
    find: "{ type: 'AppendResp', ok: true, match, round }, { vouches: true }",
    replace: "{ type: 'AppendResp', ok: true, match, round }, { vouches: false }",
  },
  {
    name: 'the leader counts itself before its disk has the entry',
    file: `${core}leadership.ts`,
    find: '(id === this.#node.id ? stableIndex :',
    replace: '(id === this.#node.id ? this.#node.log.lastIndex :',
  },
  {
    name: 'a follower acknowledges its own last entry',
    file: `${core}append.ts`,
    find: 'match: prevIndex + entries.length',
    replace: 'match: log.lastIndex',
  },
  {
    name: 'a follower commits beyond what the message showed',
    file: `${core}follower.ts`,
    find: 'state.commitTo(Math.min(commit, verdict.match));',
    replace: 'state.commitTo(Math.min(commit, state.log.lastIndex));',
  },
  {
    name: 'a heartbeat tells a commit index beyond what the peer has',
    file: `${core}replication.ts`,
    find: 'const commit = Math.min(peer.match, this.#node.commitIndex());',
    replace: 'const commit = this.#node.commitIndex();',
  },
  {
    name: 'a shorter message truncates the log',
    file: `${core}append.ts`,
    find: 'const news = known < 0 ? [] : entries.slice(known);',
    replace: 'const news = entries;',
  },
  {
    name: 'logs match by index alone',
    file: 'src/log/log-view.ts',
    find: 'index <= this.lastIndex && this.#terms.termAt(index) === term;',
    replace: 'index <= this.lastIndex && term >= 0;',
  },
  {
    name: 'the next entry to send lies at the last one stored',
    file: `${core}progress.ts`,
    find: 'this.#next = this.#match + 1;\n    this.inflight.clear();',
    replace: 'this.#next = this.#match;\n    this.inflight.clear();',
  },
  {
    name: 'answers of an earlier session count',
    file: `${core}leadership.ts`,
    find: 'if (peer.session !== answer.session) {',
    replace: 'if (peer.session < 0) {',
  },
  {
    name: 'the acknowledgement of a superseded write counts for its successor',
    file: 'src/log/log-view.ts',
    find: 'last: Math.min(write.last, last) }));',
    replace: 'last: write.last }));',
  },
  {
    name: 'a full window never opens again',
    file: `${core}progress.ts`,
    find: "if (state === 'replicate') this.inflight.free(this.#match);",
    replace: '',
  },
  {
    name: 'a leader opens its term without an entry',
    file: `${core}state.ts`,
    find: "this.append('noop', NOTHING);",
    replace: '',
  },
  // Votes (§5.2, §5.4.1, thesis §9.6)
  {
    name: 'a vote is told before it is durable',
    file: `${core}campaign.ts`,
    find: "const vouches = answer === 'VoteResp' && !reject;",
    replace: 'const vouches = false;',
  },
  {
    name: 'a term is told before it is durable',
    file: `${core}outbox.ts`,
    find: 'vouches || term > durableTerm;',
    replace: 'vouches || term < 0;',
  },
  {
    name: 'a vote is kept across a change of term',
    file: `${core}ballot.ts`,
    find: '    this.#vote = 0;\n',
    replace: '',
  },
  {
    name: 'a vote is cleared within its term',
    file: `${core}ballot.ts`,
    find: '    if (term === this.#term) return;\n',
    replace: '',
  },
  {
    name: 'a vote is given to a shorter log',
    file: `${core}election.ts`,
    find: 'return free && isUpToDate(ask.log, own.log);',
    replace: 'return free;',
  },
  {
    name: 'votes are given right after a start',
    file: `${core}election-clock.ts`,
    find: "return this.#bootMs === undefined || nowMs < this.#bootMs + electionMs ? 'after start' : undefined;",
    replace: 'return undefined;',
  },
  {
    name: 'votes are given although a leader was heard',
    file: `${core}election-clock.ts`,
    find: "if (nowMs < this.#heardMs + electionMs) return 'leader heard';",
    replace: '',
  },
  {
    name: 'a candidate counts its own vote before it is durable',
    file: `${core}campaign.ts`,
    find: "    this.#ask('Vote', { term: this.#state.term, transfer: byTransfer });\n",
    replace:
      "    this.#ask('Vote', { term: this.#state.term, transfer: byTransfer });\n    this.#tally.note(this.#state.id, true);\n    this.#count();\n",
  },
  {
    name: 'the state is flushed ahead of the stable log',
    file: 'src/driver/applier.ts',
    find: ' || this.#applied > stableIndex) return;',
    replace: ') return;',
    profile: 'driver',
  },
  {
    name: 'a follower without room acknowledges entries that it did not take',
    file: `${core}follower.ts`,
    find: '      state.commitTo(Math.min(commit, verdict.match - verdict.news.length));\n      return;\n',
    replace:
      "      state.answer(message, { type: 'AppendResp', ok: true, match: verdict.match, round }, { vouches: true });\n      return;\n",
  },
  // Membership (§6, thesis §4)
  {
    name: 'a truncated configuration stays in force',
    file: `${core}replicated-log.ts`,
    find: 'const rolledBack = this.confs.truncate(index);',
    replace: 'const rolledBack: number = 0;',
  },
  {
    name: 'a second change begins before the first is committed',
    file: `${core}membership.ts`,
    find: 'if (confs.newest.index <= commitIndex) return undefined;',
    replace: 'return undefined;',
  },
  {
    name: 'a change begins before the own term has committed an entry',
    file: `${core}membership.ts`,
    find: 'if (commitIndex < (leadership?.termStart ?? Number.POSITIVE_INFINITY)) {',
    replace: 'if (leadership === undefined) {',
  },
  {
    name: 'one half of a joint configuration commits',
    file: 'src/quorum/joint.ts',
    find: 'Math.min(incoming, majorityValue(votersOutgoing, valueFor))',
    replace: 'incoming',
  },
  {
    name: 'one half of a joint configuration elects',
    file: 'src/quorum/joint.ts',
    find: 'votersOutgoing.length > 0 ? [majorityVote(votersOutgoing, voteOf)] : []',
    replace: 'votersOutgoing.length > 99 ? [majorityVote(votersOutgoing, voteOf)] : []',
  },
  {
    name: 'a joint configuration is left before it is committed',
    file: `${core}membership.ts`,
    find: '!conf.autoLeave || index > commitIndex) return;',
    replace: '!conf.autoLeave) return;',
  },
  {
    name: 'learners count toward the quorum',
    file: `${core}leadership.ts`,
    find: 'return quorumValue(this.#conf, (id) => (id === this.#node.id ? stableIndex',
    replace:
      'const all = { ...this.#conf, voters: [...this.#conf.voters, ...this.#conf.learners] };\n    return quorumValue(all, (id) => (id === this.#node.id ? stableIndex',
  },
  {
    name: 'a removed leader counts itself',
    file: `${core}leadership.ts`,
    find: 'return quorumValue(this.#conf, (id) => (id === this.#node.id ? stableIndex',
    replace:
      'const all = { ...this.#conf, voters: [...new Set([...this.#conf.voters, this.#node.id])] };\n    return quorumValue(all, (id) => (id === this.#node.id ? stableIndex',
  },
  {
    name: 'a change of several voters is made at once',
    file: 'src/confchange/change.ts',
    find: 'if (votersChanged.length <= 1) {',
    replace: 'if (votersChanged.length <= 9) {',
  },
  // Reads (§8, thesis §6.4)
  {
    name: 'the lease outlives a transfer',
    file: `${core}leadership.ts`,
    find: 'if (this.#transfer.leaseEnded) {',
    replace: 'if (this.#transfer.leaseEnded && nowMs < 0) {',
  },
  {
    name: 'the lease runs from the arrival of an answer',
    file: `${core}leadership.ts`,
    find: '(this.#replication.peer(id)?.round.sentAtMs ?? Number.NEGATIVE_INFINITY);',
    replace: '(this.#replication.peer(id)?.heardMs ?? Number.NEGATIVE_INFINITY);',
  },
  {
    name: 'a lease lasts as long as the promise that backs it, clocks or no clocks',
    file: `${core}leadership.ts`,
    find: 'const holds = nowMs < askedMs + limits.leaseMs;',
    replace: 'const holds = nowMs < askedMs + 1.5 * limits.electionMs;',
  },
  {
    name: 'reads are answered before an entry of the own term is committed',
    file: `${core}leadership.ts`,
    find: 'ownTermCommitted: commitIndex >= this.termStart });',
    replace: 'ownTermCommitted: true });',
  },
  {
    name: 'an answer to an earlier round confirms a read',
    file: `${core}read-index.ts`,
    find: 'if (this.#inRound === undefined || round < this.#inRound.round) return [];',
    replace: 'if (this.#inRound === undefined || round < 0) return [];',
  },
  {
    name: 'an answer to an earlier run of the asker confirms a read',
    file: `${core}linearizable-reads.ts`,
    find: 'request.incarnation !== incarnation || !reads.answered(request.id)',
    replace: 'incarnation < 0 || !reads.answered(request.id)',
  },
  {
    name: 'a leader does not hear itself in a round',
    file: `${core}leadership.ts`,
    find: '    this.#reads.begun(round);\n    // The leader has answered its own round, which may be a quorum.\n    this.#confirmReads();',
    replace: '    this.#reads.begun(round);',
    profile: 'driver',
  },
  {
    name: 'the driver answers a read before its entries are applied',
    file: 'src/driver/reads.ts',
    find: 'next !== undefined && next.index <= appliedIndex;',
    replace: 'next !== undefined && appliedIndex >= 0;',
    profile: 'driver',
  },
  // Snapshots, restarts, disks (§7, the persistence contract)
  {
    name: 'a snapshot drops a tail that matches it',
    file: `${core}snapshot-receiver.ts`,
    find: "return log.holds(meta) ? 'held' : 'needed';",
    replace: "return 'needed';",
  },
  {
    name: 'a snapshot that the log has overtaken is put in force',
    file: `${core}follower.ts`,
    find: "const verdict = meta === undefined ? 'failed' : judgeSnapshot(state.log, state.commitIndex, meta);",
    replace: "const verdict = meta === undefined ? 'failed' : (judgeSnapshot(state.log, state.commitIndex, meta), 'needed');",
  },
  {
    name: 'the last entry is applied twice after a restart',
    file: `${core}committed.ts`,
    find: 'this.#handedOut = applied;',
    replace: 'this.#handedOut = Math.max(0, applied - 1);',
  },
  {
    name: 'the applied index is stored apart from its records',
    file: 'src/sim/cluster/machine.ts',
    find: 'this.#options.store(image);',
    replace: 'this.#options.store({ ...image, applied: Math.max(0, image.applied - 1) });',
  },
  {
    name: 'the high-water mark is ignored',
    file: 'src/sim/memory-disk.ts',
    find: 'if (end < this.#mark) throw',
    replace: 'if (end < 0) throw',
  },
  {
    name: 'the hard state is written to one slot only',
    file: 'src/sim/memory-log.ts',
    find: '        { hardState, slot: 1 },\n',
    replace: '',
  },
  {
    name: 'the commit hint runs ahead of the disk',
    file: `${core}commit-index.ts`,
    find: ': Math.min(this.#value, stableIndex);',
    replace: ': this.#value;',
  },
  {
    name: 'the commit hint of a snapshot leaves before it is installed',
    file: `${core}commit-index.ts`,
    find: 'return this.#isInstalling ? this.#hint :',
    replace: 'return this.#value < 0 ? this.#hint :',
  },
  {
    name: 'the driver sends what a write still holds back',
    file: 'src/driver/writes.ts',
    find: 'const released = this.#held.filter(({ seq }) => seq < first);',
    replace: 'const released = this.#held.filter(({ seq }) => seq < first + 1);',
    profile: 'driver',
  },
  {
    name: 'the driver takes any entry at its index for the one proposed',
    file: 'src/driver/proposals.ts',
    find: 'proposal.done(proposal.term === term ?',
    replace: 'proposal.done(proposal.term > 0 ?',
    profile: 'driver',
  },
];
