import { expect } from 'chai';
import { soleVoter } from '../../src/confchange/conf-state.ts';
import { runsWithoutPeers } from '../../src/driver/without-peers.ts';
import type { ConfState } from '../../src/types.ts';
import { encodeConfState } from '../../src/wire/conf-state.ts';
import { freshStart } from '../core/sole-voter.ts';

const conf = (change: Partial<ConfState>): ConfState => ({ ...soleVoter(1), ...change });
const withBase = (change: Partial<ConfState>) => ({ ...freshStart, base: { ...freshStart.base, conf: conf(change) } });

describe('a driver without ports to peers', () => {
  const others: Readonly<Record<string, Partial<ConfState>>> = {
    'another voter': { voters: [1, 2] },
    'a learner': { learners: [2] },
    'an outgoing voter': { votersOutgoing: [1, 2] },
    'no voter at all': { voters: [] },
    'somebody else alone': { voters: [2] },
  };
  for (const [name, change] of Object.entries(others)) {
    it(`refuses a configuration with ${name}: it could reach no peer`, () => {
      expect(runsWithoutPeers(withBase(change))).to.equal(false);
    });
  }

  it('refuses a log in which any entry, committed or not, names another member', () => {
    const confEntries = [conf({ voters: [1, 2] }), conf({})].map((named, i) => {
      return { term: 2, index: 3 + i, type: 'conf' as const, data: encodeConfState(named) };
    });
    expect(runsWithoutPeers({ ...freshStart, confEntries })).to.equal(false);
    expect(runsWithoutPeers({ ...freshStart, confEntries: confEntries.slice(1) })).to.equal(true);
  });
});
