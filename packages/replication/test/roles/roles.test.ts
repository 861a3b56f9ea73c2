import { clockRateError, outlasting, undetectedPauseMs } from '@transitd/raft-core';
import type { ReplicationState } from '@transitd/storage-fsm';
import { expect } from 'chai';
import fc from 'fast-check';
import { Contacts, fenceMsMax, fenceMsMin, fenceOf, fenceWaitMs, mayAccept } from '../../src/roles/fence.ts';
import { isSupersededBy, meetingOf } from '../../src/roles/meeting.ts';
import { type PromotionFacts, promotionOf } from '../../src/roles/promotion.ts';

const [a, b] = ['0a'.repeat(16), '0b'.repeat(16)] as [string, string];
const secondary: ReplicationState = {
  ...{ role: 'secondary', set: a, local: [], epochs: [{ number: 1, id: a, start: 0 }] },
  ...{ index: 40, offset: 0, seen: 1 },
};
const at = (index: number) => ({ number: 1, id: a, index });
const fence = { afterMs: 10_000 };

describe('two clusters that meet', () => {
  it('compares epochs by number, and takes two ids of one number as rivals', () => {
    expect(meetingOf({ number: 1, id: a }, { number: 2, id: b })).to.equal('superseded');
    expect(meetingOf({ number: 2, id: b }, { number: 1, id: a })).to.equal('lower');
    expect(meetingOf({ number: 2, id: b }, { number: 2, id: b })).to.equal('same');
    expect(meetingOf({ number: 2, id: a }, { number: 2, id: b })).to.equal('superseded');
    expect(meetingOf({ number: 2, id: b }, { number: 2, id: a }), 'both are superseded').to.equal('superseded');
  });

  it('supersedes only a primary', () => {
    expect(isSupersededBy({ ...secondary, role: 'primary' }, { number: 2, id: b })).to.equal(true);
    expect(isSupersededBy(secondary, { number: 2, id: b })).to.equal(false);
  });
});

describe('the fence', () => {
  const contacts = new Contacts({ number: 1, id: a });
  const accepts = (nowMs: number, secondaries: readonly string[]) => mayAccept(fence, { contacts, secondaries, nowMs });

  it('accepts writes while every secondary has answered a heartbeat that was sent lately', () => {
    expect(accepts(0, []), 'no secondary').to.equal(true);
    expect(accepts(0, ['one']), 'it never answered').to.equal(false);
    contacts.answered('one', 1_000, { number: 1, id: a });
    contacts.answered('one', 900, { number: 1, id: a });
    expect(accepts(10_999, ['one'])).to.equal(true);
    expect(accepts(11_000, ['one'])).to.equal(false);
    expect(accepts(1_000, ['one', 'two']), 'the other never answered').to.equal(false);
    expect(mayAccept(undefined, { contacts, secondaries: ['two'], nowMs: 0 }), 'without a fence').to.equal(true);
  });

  it('does not count the answer of a secondary that follows another epoch', () => {
    contacts.answered('one', 50_000, { number: 1, id: b });
    expect(accepts(50_000, ['one'])).to.equal(false);
  });

  it('waits for the whole time by the clock of the primary', () => {
    const waitMs = outlasting(fence.afterMs);
    expect(fenceWaitMs(fence, 0)).to.equal(waitMs);
    expect(fenceWaitMs(fence, waitMs - 0.5)).to.equal(1);
    expect(fenceWaitMs(fence, waitMs)).to.equal(0);
    expect(fenceWaitMs(undefined, 0)).to.equal(0);
  });
});

describe('the fence between two clusters', () => {
  const rate = fc.oneof(
    fc.constantFrom(1 - clockRateError, 1 + clockRateError),
    fc.double({ min: 1 - clockRateError, max: 1 + clockRateError, noNaN: true }),
  );
  const fenceMs = fc.oneof(fc.constantFrom(fenceMsMin, fenceMsMax), fc.integer({ min: fenceMsMin, max: fenceMsMax }));

  it('closes before a promotion takes effect, at any rates of their clocks', () => {
    fc.assert(
      fc.property(fenceMs, rate, rate, fc.nat(undetectedPauseMs), (ms, primaryRate, secondaryRate, pauseMs) => {
        const [epoch, settings] = [{ number: 1, id: a }, fenceOf({ fenceMs: ms })];
        const contacts = new Contacts(epoch);
        contacts.answered('one', 0, epoch); // sent and answered at the same moment
        const promotedMs = fenceWaitMs(settings, 0) / secondaryRate;
        expect(fenceWaitMs(settings, promotedMs * secondaryRate + 1e-6)).to.equal(0);
        const nowMs = (promotedMs - pauseMs) * primaryRate;
        expect(mayAccept(settings, { contacts, secondaries: ['one'], nowMs: nowMs + 1e-6 })).to.equal(false);
      }),
    );
  });
});

describe('the decision on a promotion', () => {
  const decide = (facts: Partial<PromotionFacts> = {}) =>
    promotionOf({
      state: secondary,
      silentMs: 60_000,
      unansweredMs: 60_000,
      isCounted: true,
      isPromotion: true,
      recentMs: 5_000,
      fence: undefined,
      primary: undefined,
      force: false,
      ...facts,
    });
  const refused = (reason: string) => ({ kind: 'refuse', reason });

  it('promotes a secondary whose primary is silent, and says what is known to be lost', () => {
    expect(decide()).to.deep.equal({ kind: 'promote', from: at(40), lossless: false, missing: 0, missesRestore: false });
    expect(decide({ primary: { at: at(45), demoted: false } })).to.include({ kind: 'promote', missing: 5, lossless: false });
  });

  it('refuses while the primary is alive, unless it is forced', () => {
    expect(decide({ silentMs: 4_999 })).to.deep.equal(refused('primary_alive'));
    expect(decide({ silentMs: 4_999, force: true })).to.include({ kind: 'promote' });
  });

  it('promotes at once and without loss after the primary has stopped, with a fence too', () => {
    const primary = { at: at(40), demoted: true };
    const promoted = { kind: 'promote', from: at(40), lossless: true, missing: 0, missesRestore: false };
    expect(decide({ primary, silentMs: 0, unansweredMs: 0, fence })).to.deep.equal(promoted);
  });

  it('refuses while it is behind a primary that has stopped, unless it is forced', () => {
    const primary = { at: at(45), demoted: true };
    expect(decide({ primary })).to.deep.equal(refused('behind'));
    expect(decide({ primary, force: true })).to.include({ kind: 'promote', missing: 5, lossless: false });
  });

  it('refuses while it has the state from before a restore of the primary, unless it is forced', () => {
    const restored = (restoredAt: number) => ({ at: at(45), demoted: false, restoredAt });
    expect(decide({ primary: restored(41) })).to.deep.equal(refused('misses_restore'));
    expect(decide({ primary: restored(41), force: true })).to.include({ kind: 'promote', missing: 5, missesRestore: true });
    expect(decide({ primary: restored(40) })).to.include({ kind: 'promote', missing: 5, missesRestore: false });
  });

  it('ignores what it has heard in another epoch', () => {
    expect(decide({ primary: { at: { ...at(40), id: b }, demoted: true }, silentMs: 0 })).to.deep.equal(refused('primary_alive'));
  });

  it('waits for the fence, forced or not', () => {
    const waits = { kind: 'wait', waitMs: outlasting(fence.afterMs) - 6_000 };
    for (const force of [false, true])
      expect(decide({ fence, silentMs: 6_000, unansweredMs: 6_000, force })).to.deep.equal(waits);
    expect(decide({ fence, silentMs: 0, unansweredMs: 6_000, force: true })).to.deep.equal(waits);
  });

  it('refuses a secondary that does not count, with a fence or without, unless it is forced', () => {
    for (const facts of [{ isCounted: false }, { isCounted: false, fence }]) {
      expect(decide(facts)).to.deep.equal(refused('not_counted'));
      expect(decide({ ...facts, force: true })).to.include({ kind: 'promote' });
      const stopped = { ...facts, primary: { at: at(40), demoted: true } };
      expect(decide(stopped), 'a primary that stopped can be promoted again').to.deep.equal(refused('not_counted'));
      expect(decide({ ...stopped, force: true })).to.include({ kind: 'promote', lossless: true });
    }
  });

  it('lets a secondary that does not count leave the set, unless there is a fence', () => {
    const leaves = { isPromotion: false, isCounted: false };
    expect(decide(leaves)).to.include({ kind: 'promote' });
    expect(decide({ ...leaves, fence })).to.deep.equal(refused('not_counted'));
    expect(decide({ ...leaves, fence, force: true })).to.include({ kind: 'promote' });
  });

  it('refuses a former primary that follows and has not received the later epoch that it has met, unless it is forced', () => {
    const state = { ...secondary, seen: secondary.seen + 1 };
    expect(decide({ state, isCounted: false })).to.deep.equal(refused('superseded'));
    expect(decide({ state, isCounted: false, force: true })).to.include({ kind: 'promote' });
    expect(decide({ state }), 'its own promotion was undone').to.include({ kind: 'promote' });
  });

  it('refuses clusters that cannot be promoted', () => {
    expect(decide({ state: { ...secondary, role: 'primary' } })).to.deep.equal(refused('not_secondary'));
    expect(decide({ state: { ...secondary, epochs: [] } })).to.deep.equal(refused('no_state'));
    expect(decide({ state: { ...secondary, role: 'superseded' } })).to.deep.equal(refused('superseded'));
    expect(decide({ state: { ...secondary, role: 'superseded' }, force: true })).to.include({ kind: 'promote', lossless: false });
  });
});
