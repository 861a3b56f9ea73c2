import { commonVersion, type WireVersions } from '@transitd/raft-core';
import { expect } from 'chai';
import fc from 'fast-check';
import { agreedProtocol, raftProtocols } from '../../src/transport/raft-protocol.ts';

const versions: fc.Arbitrary<WireVersions> = fc
  .tuple(fc.nat(9), fc.nat(3))
  .map(([oldest, more]) => ({ oldest, newest: oldest + more }));

describe('the format of Raft’s frames', () => {
  it('is the newest that both know, and undefined without a common one', () => {
    fc.assert(
      fc.property(versions, versions, (one, other) => {
        const version = commonVersion(one, other);
        const agreed = agreedProtocol(new Set(raftProtocols(one)), other);
        expect(agreed).to.equal(version === undefined ? undefined : `transitd.raft.${version}`);
      }),
    );
  });

  it('is undefined when the peer offers none, or another protocol', () => {
    for (const offered of [[], ['transitd.raft'], ['transitd.raft.01'], ['transitd.raft.2x'], ['chat']])
      expect(agreedProtocol(new Set(offered), { oldest: 1, newest: 2 }), offered.join()).to.equal(undefined);
  });
});
