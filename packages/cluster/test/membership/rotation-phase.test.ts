import type { NodeId } from '@transitd/raft-core';
import { expect } from 'chai';
import fc from 'fast-check';
import { makeAuthority } from '../../src/membership/authority.ts';
import {
  certificateShown,
  certificateSigned,
  decodeMembership,
  encodeMembership,
  type Membership,
  memberRemoved,
} from '../../src/membership/membership.ts';
import {
  advanced,
  announced,
  blockingMembers,
  maySign,
  namedAuthorities,
  phaseOf,
  withdrawn,
} from '../../src/membership/rotation-phase.ts';
import { clusterId } from '../credentials.ts';

const fingerprint = (id: NodeId, generation = 0): string => `${id}${generation}`.repeat(32);
const listOf = (...ids: readonly NodeId[]): Membership => ({
  members: ids.map((id) => ({
    id,
    name: `n${id}`,
    apiAddress: `http://10.0.0.${id}:8200`,
    clusterAddress: `10.0.0.${id}:8201`,
    certificate: fingerprint(id),
    nonVoter: false,
    levels: { oldest: 1, newest: 1 },
  })),
  removed: [],
});
const allMembers = (): boolean => true;
const renewed = (membership: Membership, id: NodeId, generation = 1): Membership =>
  certificateShown(certificateSigned(membership, id, fingerprint(id, generation)), id, fingerprint(id, generation));

describe("the rotation of the cluster's authority", () => {
  let a = '';
  let b = '';
  before(async () => {
    [a, b] = (await Promise.all([1, 2].map(async () => (await makeAuthority(clusterId, new Date())).certificate))) as [
      string,
      string,
    ];
  });

  it('announces a new authority, which is trusted and does not sign', () => {
    const after = announced(listOf(1, 2), a, b);
    expect(phaseOf(after.authorities)).to.equal('announced');
    expect(namedAuthorities(after)).to.deep.equal([a, b]);
    expect([maySign(after, a), maySign(after, b)]).to.deep.equal([true, false]);
  });

  it('begins neither twice nor from an authority that does not sign', () => {
    const before = announced(listOf(1), a, b);
    expect(announced(before, a, b)).to.equal(before);
    const done: Membership = { ...listOf(1), authorities: { current: b } };
    expect(announced(done, a, b)).to.equal(done);
  });

  it('waits until every member has stored the announcement, and names those that have not', () => {
    const before = announced(listOf(1, 2, 3), a, b);
    const holds = (id: NodeId): boolean => id !== 2;
    expect(advanced(before, holds)).to.equal(before);
    expect(blockingMembers(before, holds).map(({ id }) => id)).to.deep.equal([2]);
    const after = advanced(before, allMembers);
    expect(phaseOf(after.authorities)).to.equal('switched');
    expect([maySign(after, a), maySign(after, b)]).to.deep.equal([false, true]);
    expect(namedAuthorities(after)).to.have.members([a, b]);
  });

  it('trusts the old authority until every member uses a certificate of the new one, or was removed', () => {
    const switched = advanced(announced(certificateSigned(listOf(1, 2, 3), 3, fingerprint(3, 5)), a, b), allMembers);
    const names = (membership: Membership) => blockingMembers(membership, allMembers).map(({ id }) => id);
    expect(names(switched)).to.deep.equal([1, 2, 3]);
    const signed = certificateSigned(switched, 1, fingerprint(1, 1));
    expect(names(signed), 'signed, and not shown yet').to.deep.equal([1, 2, 3]);
    expect(names(renewed(switched, 1))).to.deep.equal([2, 3]);
    const late = certificateShown(renewed(renewed(switched, 1), 2), 3, fingerprint(3, 5));
    expect(names(late), 'a certificate that the old authority signed shortly before').to.deep.equal([3]);
    expect(advanced(late, allMembers)).to.equal(late);
    for (const ready of [renewed(late, 3), memberRemoved(late, 3)]) {
      const done = advanced(ready, allMembers);
      expect(done.authorities).to.deep.equal({ current: b });
      expect(advanced(done, allMembers)).to.equal(done);
    }
  });

  it('is withdrawn only before the new authority signs', () => {
    const before = announced(listOf(1), a, b);
    expect(withdrawn(before).authorities).to.deep.equal({ current: a });
    const switched = advanced(before, allMembers);
    expect(withdrawn(switched)).to.equal(switched);
  });

  it('is stored with the membership', () => {
    const [announcement, plain] = [announced(listOf(1, 2), a, b), listOf(1, 2)];
    for (const one of [plain, announcement, advanced(announcement, allMembers), withdrawn(announcement)])
      expect(decodeMembership(encodeMembership(one))).to.deep.equal(one);
  });

  it('always trusts each authority whose certificates members still use, in any order of events', () => {
    const event = fc.oneof(
      fc.record({ kind: fc.constant('renews' as const), id: fc.integer({ min: 1, max: 3 }) }),
      fc.record({ kind: fc.constant('holds' as const), id: fc.integer({ min: 1, max: 3 }) }),
      fc.record({ kind: fc.constantFrom('advances' as const, 'removed' as const), id: fc.integer({ min: 1, max: 3 }) }),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), (events) => {
        const issuers = new Map<string, string>([1, 2, 3].map((id) => [fingerprint(id), a]));
        const held = new Set<NodeId>();
        let membership = announced(listOf(1, 2, 3), a, b);
        let generation = 0;
        for (const { kind, id } of events) {
          if (kind === 'holds') held.add(id);
          else if (kind === 'advances') membership = advanced(membership, (one) => held.has(one));
          else if (kind === 'removed' && membership.members.length > 1) membership = memberRemoved(membership, id);
          else if (kind === 'renews' && generation < 9) {
            generation += 1;
            issuers.set(fingerprint(id, generation), membership.authorities?.current ?? '');
            membership = renewed(membership, id, generation);
          }
          const trusted = namedAuthorities(membership);
          for (const { certificate } of membership.members) expect(trusted).to.include(issuers.get(certificate));
        }
      }),
    );
  });
});
