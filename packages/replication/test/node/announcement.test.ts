import type { ReplicationState } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { announcesEpoch, type FormerPrimary } from '../../src/node/announcement.ts';
import { reconnectLimits } from '../../src/port/primary-link.ts';

const epoch = { number: 2, id: 'second', start: 10 };
const primary: ReplicationState = {
  ...{ role: 'primary', set: 'set', epochs: [{ number: 1, id: 'first', start: 0 }, epoch], index: 0, offset: 0 },
  local: [],
  seen: 2,
};
const followed: FormerPrimary = {
  cluster: 'east',
  registrations: [{ secondary: 'east-2', cluster: 'east' }],
  connected: [{ secondary: 'east-2', acknowledged: { number: 2, id: 'second' } }],
};
const minutes = 60_000;

describe('announcesEpoch', () => {
  it('is always true while the former primary does not follow', () => {
    const others: readonly FormerPrimary[] = [
      { ...followed, connected: [] },
      { ...followed, cluster: undefined },
      { ...followed, registrations: [] },
      { ...followed, connected: [{ secondary: 'east-2', acknowledged: undefined }] },
      { ...followed, connected: [{ secondary: 'east-2', acknowledged: { number: 1, id: 'first' } }] },
      { ...followed, connected: [{ secondary: 'east-2', acknowledged: { number: 2, id: 'other' } }] },
    ];
    for (const former of others) expect(announcesEpoch(primary, former, 5 * minutes)).to.equal(true);
  });

  it('is true for half a minute in ten while it follows, because a copy of its data may be what follows', () => {
    const seconds = Array.from({ length: 1200 }, (_, second) => announcesEpoch(primary, followed, 1e9 + second * 1000));
    expect(seconds.filter(Boolean)).to.have.length(60);
  });

  it('is true for long enough to reach the last of five nodes, if the others do not answer', () => {
    const { connectMsMax, reconnectMsMin } = reconnectLimits;
    const failures = 5; // of four nodes, of which the first one is tried twice
    const waitsMs = reconnectMsMin * (2 ** failures - 1);
    const begin = 10 * minutes;
    expect(announcesEpoch(primary, followed, begin - 1)).to.equal(false);
    for (let ms = begin; ms <= begin + failures * connectMsMax + waitsMs; ms += 100)
      expect(announcesEpoch(primary, followed, ms), `${ms - begin} ms`).to.equal(true);
  });

  it('is false on a cluster that is no primary', () => {
    for (const role of ['secondary', 'demoted', 'disabled'] as const)
      expect(announcesEpoch({ ...primary, role }, { ...followed, connected: [] }, 0)).to.equal(false);
  });
});
