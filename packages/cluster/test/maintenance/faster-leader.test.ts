import { expect } from 'chai';
import { type Candidate, FasterLeader } from '../../src/maintenance/faster-leader.ts';

const minuteMs = 60_000;

/** Asks every five seconds from `fromMs` on, as the leader does; returns the first successor and the time. */
function namedAt(
  decision: FasterLeader,
  { writeMs, candidates }: { readonly writeMs: number; readonly candidates: (nowMs: number) => readonly Candidate[] },
  fromMs = 0,
): { readonly id: number; readonly atMs: number } | undefined {
  for (let nowMs = fromMs; nowMs <= fromMs + 30 * minuteMs; nowMs += 5_000) {
    const id = decision.successor({ nowMs, writeMs, candidates: candidates(nowMs) });
    if (id !== undefined) return { id, atMs: nowMs - fromMs };
  }
  return undefined;
}

const elected = (byTransfer = false, reportIntervalMs = 1000): FasterLeader => {
  const decision = new FasterLeader({ reportIntervalMs });
  decision.leadershipBegins({ nowMs: 0, byTransfer });
  return decision;
};

describe('FasterLeader', () => {
  it('names a voter that has been three times faster for thirty seconds', () => {
    const candidates = () => [{ id: 2, writeMs: 200, reportedAgoMs: 0 }];
    expect(namedAt(elected(), { writeMs: 600, candidates })).to.deep.equal({ id: 2, atMs: 30_000 });
  });

  it('names the fastest of several', () => {
    const candidates = () => [
      { id: 2, writeMs: 20, reportedAgoMs: 0 },
      { id: 3, writeMs: 5, reportedAgoMs: 0 },
    ];
    expect(namedAt(elected(), { writeMs: 600, candidates })).to.include({ id: 3 });
  });

  for (const { who, writeMs, candidateMs } of [
    { who: 'one that is only twice as fast', writeMs: 600, candidateMs: 300 },
    { who: 'one that has not reported a time', writeMs: 600, candidateMs: Number.POSITIVE_INFINITY },
    { who: 'a faster one while the leader’s disk is fast enough', writeMs: 20, candidateMs: 0.1 },
    { who: 'any voter while nothing is written here', writeMs: 0, candidateMs: 1 },
  ])
    it(`does not name ${who}`, () => {
      expect(namedAt(elected(), { writeMs, candidates: () => [{ id: 2, writeMs: candidateMs, reportedAgoMs: 0 }] })).to.equal(
        undefined,
      );
    });

  it('does not name a voter whose report is more than ten seconds old, and starts over with its next report', () => {
    const old = () => [{ id: 2, writeMs: 1, reportedAgoMs: 10_001 }];
    expect(namedAt(elected(), { writeMs: 600, candidates: old })).to.equal(undefined);
    const later = (nowMs: number) => [{ id: 2, writeMs: 1, reportedAgoMs: nowMs < 25_000 ? 10_001 : 10_000 }];
    expect(namedAt(elected(), { writeMs: 600, candidates: later })).to.deep.equal({ id: 2, atMs: 55_000 });
  });

  for (const { intervalMs, atMs } of [
    { intervalMs: 15_000, atMs: 30_000 },
    { intervalMs: minuteMs, atMs: 2 * minuteMs },
  ])
    it(`names a voter that reports every ${intervalMs / 1000} s after two intervals, at least thirty seconds`, () => {
      const reporting = (nowMs: number) => [{ id: 2, writeMs: 1, reportedAgoMs: nowMs % intervalMs }];
      expect(namedAt(elected(false, intervalMs), { writeMs: 600, candidates: reporting })).to.deep.equal({ id: 2, atMs });
    });

  it('does not name a voter that has not reported for two intervals', () => {
    const silent = () => [{ id: 2, writeMs: 1, reportedAgoMs: 2 * minuteMs + 1 }];
    expect(namedAt(elected(false, minuteMs), { writeMs: 600, candidates: silent })).to.equal(undefined);
  });

  it('does not name a voter that was slow, sealed or away in between', () => {
    const breaks: readonly (readonly Candidate[])[] = [[{ id: 2, writeMs: 500, reportedAgoMs: 0 }], []];
    for (const broken of breaks) {
      const candidates = (nowMs: number) => (nowMs % 25_000 === 0 ? broken : [{ id: 2, writeMs: 1, reportedAgoMs: 0 }]);
      expect(namedAt(elected(), { writeMs: 600, candidates })).to.equal(undefined);
    }
  });

  it('waits ten minutes after its own transfer, and after the transfer that made this node the leader', () => {
    const candidates = () => [{ id: 2, writeMs: 1, reportedAgoMs: 0 }];
    const decision = elected();
    const first = namedAt(decision, { writeMs: 600, candidates });
    expect(first?.atMs).to.equal(30_000);
    decision.transferStarted(30_000);
    expect(namedAt(decision, { writeMs: 600, candidates }, 35_000)?.atMs).to.be.within(10 * minuteMs - 5_000, 10 * minuteMs);
    expect(namedAt(elected(true), { writeMs: 600, candidates })?.atMs).to.equal(10 * minuteMs);
  });

  it('starts a new comparison with each new leadership', () => {
    const decision = elected();
    const candidates = [{ id: 2, writeMs: 1, reportedAgoMs: 0 }];
    for (let nowMs = 0; nowMs < 30_000; nowMs += 5_000) decision.successor({ nowMs, writeMs: 600, candidates });
    decision.leadershipBegins({ nowMs: 30_000, byTransfer: false });
    expect(decision.successor({ nowMs: 30_000, writeMs: 600, candidates })).to.equal(undefined);
  });
});
