import { electionTimeoutMsMin, leaseMsMax } from '@transitd/configuration';
import { clockRateError, undetectedPauseMs } from '@transitd/raft-core';
import { expect } from 'chai';
import { raftLimits } from '../../src/storage/raft-engine.ts';

const raft = { heartbeat: 150, lease: leaseMsMax, snapshot_threshold: 50_000, trailing_logs: 10_000, disk_reserve: 0 };

describe('the lease of a leader', () => {
  for (const election_timeout of [1_000, 5_000, 60_000])
    it(`with an election timeout of ${election_timeout} ms is shorter than any other node’s election timeout`, () => {
      const { leaseMs, electionMs } = raftLimits({ ...raft, election_timeout });
      expect(electionMs).to.equal(election_timeout);
      expect(leaseMs).to.equal(800);
      expect(leaseMs).to.be.below(electionTimeoutMsMin);
    });

  it('is off when the configuration says 0', () => {
    expect(raftLimits({ ...raft, election_timeout: 1_000, lease: 0 }).leaseMs).to.equal(0);
  });

  it('ends before the voters’ promises, with clock rates a tenth off and an undetected pause', () => {
    expect(leaseMsMax / (1 - clockRateError) + undetectedPauseMs).to.be.below(electionTimeoutMsMin / (1 + clockRateError));
  });
});
