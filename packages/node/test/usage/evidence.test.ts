import type { VersionUse } from '@transitd/transit-engine';
import { expect } from 'chai';
import { useFault } from '../../src/usage/evidence.ts';

const nowMs = Date.UTC(2026, 5, 30);
const daysAgo = (days: number): number => nowMs - days * 86_400_000;
const within = { withinMs: 30 * 86_400_000, nowMs };

const usedAt = (lastMs: number): VersionUse => ({
  ...{ encryptions: 0, decryptions: 7, signatures: 0, verifications: 1 },
  ...{ firstMs: daysAgo(300), lastMs },
});
const usageOf = (versions: Readonly<Record<number, number>>) => ({
  id: 'a',
  lostMs: 0,
  versions: new Map(Object.entries(versions).map(([version, lastMs]) => [Number(version), usedAt(lastMs)])),
});

describe('the evidence that versions are not used', () => {
  const all = { sinceMs: daysAgo(40), unanswered: [] };
  const old = (version: number): boolean => version < 3;

  for (const [title, current, expected] of [
    ['is enough if nothing was used', { ...all, usage: usageOf({}) }, undefined],
    ['is enough if the last use is longer ago', { ...all, usage: usageOf({ 1: daysAgo(31), 2: daysAgo(35) }) }, undefined],
    ['is enough if only versions that stay were used', { ...all, usage: usageOf({ 3: daysAgo(0) }) }, undefined],
    [
      'is refused with the numbers of a version that was used',
      { ...all, usage: usageOf({ 2: daysAgo(29) }) },
      /^used within that time: version 2 \(7 decryptions, 1 verifications; last at 2026-06-01T00:00:00\.000Z\)$/,
    ],
    ['counts a use at the very beginning of the time', { ...all, usage: usageOf({ 2: daysAgo(30) }) }, /version 2/],
    ['counts a use in the future: a clock was ahead', { ...all, usage: usageOf({ 2: daysAgo(-1) }) }, /version 2/],
    ['is missing if a node did not answer', { ...all, unanswered: ['n2', 'n3'], usage: usageOf({}) }, /^n2, n3 did not answer/],
    ['is missing if counting began later', { ...all, sinceMs: daysAgo(29), usage: usageOf({}) }, /since 2026-06-01T00:00:00/],
    ['is missing if counting has not begun', { ...all, sinceMs: undefined, usage: usageOf({}) }, /does not count/],
    ['is enough if counting began exactly then', { ...all, sinceMs: daysAgo(30), usage: usageOf({}) }, undefined],
    [
      'shows the numbers although a node did not answer',
      { ...all, unanswered: ['n2'], usage: usageOf({ 1: daysAgo(1) }) },
      /version 1/,
    ],
  ] as const)
    it(title, () => {
      const fault = useFault(current, old, within);
      if (expected === undefined) expect(fault).to.equal(undefined);
      else expect(fault).to.match(expected);
    });

  it('lists a few versions', () => {
    const usage = usageOf(Object.fromEntries(Array.from({ length: 9 }, (_, i) => [i + 1, daysAgo(1)])));
    expect(useFault({ ...all, usage }, () => true, within)).to.match(/version 5 \([^;]*; [^;]*\); and 4 more$/);
  });
});
