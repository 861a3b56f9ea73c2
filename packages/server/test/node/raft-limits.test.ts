import { expect } from 'chai';
import { electionTimeoutMsMin } from '../../src/config.ts';
import { raftLimits } from '../../src/node/storage.ts';

const raft = { heartbeat: 150, snapshot_threshold: 50_000, trailing_logs: 10_000, disk_reserve: 0 };

describe('the lease of a leader', () => {
  for (const election_timeout of [1_000, 5_000, 60_000])
    it(`with an election timeout of ${election_timeout} ms is shorter than any other node’s election timeout`, () => {
      const { leaseMs, electionMs } = raftLimits({ ...raft, election_timeout });
      expect(electionMs).to.equal(election_timeout);
      expect(leaseMs).to.equal(800);
      expect(leaseMs).to.be.below(electionTimeoutMsMin);
    });
});
