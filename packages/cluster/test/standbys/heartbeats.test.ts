import { expect } from 'chai';
import { MemberEvents } from '../../src/ports/member-events.ts';
import { Heartbeats } from '../../src/standbys/heartbeats.ts';

const replication = { performance: 'disabled', disasterRecovery: 'disabled' } as const;

describe('the heartbeats of a standby', () => {
  const heartbeats = (): Heartbeats => new Heartbeats(1000, 0);
  const answered = (to: Heartbeats, sentMs: number, commitIndex: number, receivedMs = sentMs + 5): void =>
    to.answered({ commitIndex, utcMs: 7000, replication }, { sentMs, receivedMs, receivedUtcMs: 6990 });

  it('count from the time they were sent, once their commit index is applied', () => {
    const of = heartbeats();
    answered(of, 100, 10);
    expect(of.appliedSentMs(9)).to.equal(undefined);
    expect(of.appliedSentMs(10)).to.equal(100);
  });

  it('report that they are forgotten', () => {
    let forgotten = 0;
    const events = new MemberEvents();
    const of = new Heartbeats(1000, 0, events);
    events.on('heartbeatsForgotten', () => {
      forgotten += of.appliedSentMs(10) === undefined ? 1 : 0; // the answers are gone by then
    });
    answered(of, 100, 10);
    expect([of.appliedSentMs(10), forgotten]).to.deep.equal([100, 0]);
    of.restart(200);
    expect(forgotten).to.equal(1);
  });

  it('still count an applied heartbeat while a newer one waits for its commit index', () => {
    const of = heartbeats();
    answered(of, 100, 10);
    expect(of.appliedSentMs(10)).to.equal(100);
    answered(of, 1100, 20);
    expect(of.appliedSentMs(15)).to.equal(100);
    expect(of.appliedSentMs(20)).to.equal(1100);
  });

  it('count an older heartbeat as applied while newer ones are far ahead', () => {
    const of = heartbeats();
    for (const [sentMs, index] of [
      [100, 10],
      [1100, 20],
      [2100, 30],
    ] as const)
      answered(of, sentMs, index);
    expect(of.appliedSentMs(25)).to.equal(1100);
  });

  it('replace an older answer by a newer one with the same commit index', () => {
    const of = heartbeats();
    answered(of, 100, 10);
    answered(of, 1100, 10);
    expect(of.appliedSentMs(10)).to.equal(1100);
  });

  it('report duration and clock skew, and no skew after a failure', () => {
    const of = heartbeats();
    answered(of, 100, 10, 108);
    expect(of.times).to.deep.include({ durationMs: 8, clockSkewMs: 10, answeredSentMs: 100 });
    of.failed({ sentMs: 1100, nowMs: 3100 });
    expect(of.times).to.deep.include({ durationMs: 2000, clockSkewMs: 0, answeredSentMs: 100 });
  });

  it('show that a leader has become silent, and give the next leader the same time to answer', () => {
    const of = heartbeats();
    of.leaderFound(7, 50);
    expect(of.isSilent(9000), 'a leader that has never answered').to.equal(false);
    answered(of, 100, 10);
    expect(of.isSilent(2099)).to.equal(false);
    expect(of.isSilent(2100)).to.equal(true);
    of.leaderFound(7, 2200);
    expect(of.isSilent(2200), 'the same leader').to.equal(true);
    of.leaderFound(8, 2300);
    expect([of.isSilent(4299), of.isSilent(4300)]).to.deep.equal([false, true]);
    answered(of, 4400, 10);
    expect(of.isSilent(4410)).to.equal(false);
    of.restart(9000);
    expect(of.isSilent(9000)).to.equal(false);
  });

  it('do not permit the node to serve when they were sent before a restart', () => {
    const of = heartbeats();
    of.restart(500);
    answered(of, 400, 10, 600);
    expect(of.appliedSentMs(10)).to.equal(undefined);
  });

  it('are forgotten at a restart', () => {
    const of = heartbeats();
    answered(of, 100, 10);
    of.restart(500);
    expect(of.appliedSentMs(10)).to.equal(undefined);
    expect(of.times).to.deep.equal({ intervalMs: 1000, sinceMs: 500, durationMs: 5, clockSkewMs: 10 });
  });
});
