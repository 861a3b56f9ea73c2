import { expect } from 'chai';
import fc from 'fast-check';
import {
  certificateShown,
  certificateSigned,
  decodeMembership,
  encodeMembership,
  listedNode,
  type Member,
  type Membership,
  memberRemoved,
  noMembers,
  parseHostAndPort,
  type RemovedMember,
} from '../../src/membership/membership.ts';

const fingerprint = (n: number): string => n.toString(16).padStart(64, '0');

const member = (id: number, more: Partial<Member> = {}): Member => ({
  id,
  name: `node-${id}`,
  apiAddress: `https://10.0.0.${id % 250}:8200`,
  clusterAddress: `10.0.0.${id % 250}:8201`,
  certificate: fingerprint(id),
  nonVoter: false,
  levels: { oldest: 1, newest: 1 },
  ...more,
});
const removed = (id: number): RemovedMember => ({ id, name: `node-${id}`, certificate: fingerprint(id) });
const text = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

describe('the membership', () => {
  it('has no members while the configuration has no context', () => {
    expect(decodeMembership(new Uint8Array())).to.deep.equal(noMembers);
  });

  it('is read as it was written', () => {
    const ids = fc.uniqueArray(fc.integer({ min: 1, max: 2 ** 48 - 1 }), { maxLength: 20 });
    fc.assert(
      fc.property(ids, fc.nat(20), fc.boolean(), (all, cut, nonVoter) => {
        const list: Membership = {
          members: all.slice(0, cut).map((id) => member(id, nonVoter ? { nonVoter, clusterAddress: '[::1]:8201' } : {})),
          removed: all.slice(cut).map(removed),
        };
        expect(decodeMembership(encodeMembership(list))).to.deep.equal(list);
      }),
    );
  });

  it('keeps the newest 256 removed members', () => {
    const list = { members: [member(1)], removed: Array.from({ length: 300 }, (_, i) => removed(i + 2)) };
    expect(decodeMembership(encodeMembership(list)).removed).to.deep.equal(list.removed.slice(-256));
  });

  it('drops the oldest removed members when the membership would outgrow node.state', () => {
    const long = Array.from({ length: 256 }, (_, i) => ({ ...removed(2 ** 47 + i), name: 'n'.repeat(64) }));
    const bytes = encodeMembership({ members: [], removed: long });
    const kept = decodeMembership(bytes).removed;
    expect(bytes.length).to.be.at.most(40 * 1024);
    expect(kept.length).to.be.within(200, 255);
    expect(kept).to.deep.equal(long.slice(-kept.length));
  });

  it('refuses to write a member list that is too long even without removed members', () => {
    const members = Array.from({ length: 300 }, (_, i) => member(i + 1));
    expect(() => encodeMembership({ members, removed: [] })).to.throw('more than 40960 bytes');
  });

  it('keeps the fields that only a later release knows, also through a change of the members', () => {
    const later = text({
      format: 1,
      members: [{ ...member(1), levels: { oldest: 1, newest: 2 }, zone: 'a' }, member(2)],
      removed: [{ ...removed(3), reason: 'disk' }],
      label: { text: 'x' },
    });
    const changed = JSON.parse(Buffer.from(encodeMembership(memberRemoved(decodeMembership(later), 2))).toString());
    expect(changed.members).to.deep.equal([{ ...member(1), levels: { oldest: 1, newest: 2 }, zone: 'a' }]);
    expect(changed.removed[0]).to.deep.equal({ ...removed(3), reason: 'disk' });
    expect(changed.label).to.deep.equal({ text: 'x' });
    expect(changed.format).to.equal(1);
  });

  const good = { format: 1, members: [member(1)], removed: [] };
  for (const [what, bytes] of [
    ['another format', text({ ...good, format: 2 })],
    ['no format', text({ members: [], removed: [] })],
    [
      'a member with a malformed range of feature levels',
      text({ ...good, members: [{ ...member(1), levels: { oldest: 2, newest: 1 } }] }),
    ],
    ['no JSON', Buffer.from('{')],
    ['an id twice', text({ ...good, removed: [{ ...removed(1), certificate: fingerprint(2) }] })],
    ['a certificate twice', text({ ...good, members: [member(1), { ...member(2), certificate: fingerprint(1) }] })],
    [
      'a next certificate that belongs to another member',
      text({ ...good, members: [member(1), { ...member(2), nextCertificate: fingerprint(1) }] }),
    ],
    ['the id 0', text({ ...good, members: [member(0)] })],
    ['an id of 49 bits', text({ ...good, members: [member(2 ** 48)] })],
    ['a fingerprint in capitals', text({ ...good, members: [member(1, { certificate: 'A'.repeat(64) })] })],
    ['a cluster address without a port', text({ ...good, members: [member(1, { clusterAddress: 'host' })] })],
    ['a malformed API address', text({ ...good, members: [member(1, { apiAddress: 'ftp://host' })] })],
  ] as const)
    it(`does not read ${what}`, () => expect(() => decodeMembership(bytes)).to.throw('the member list'));
});

describe('a listed node', () => {
  const list: Membership = { members: [member(1), member(2, { nextCertificate: fingerprint(20) })], removed: [removed(3)] };

  for (const [whose, certificate, expected] of [
    ['a member’s certificate', 1, { id: 1, memberState: 'member' }],
    ['a certificate that is being renewed', 2, { id: 2, memberState: 'member' }],
    ['the renewed certificate that replaces it', 20, { id: 2, memberState: 'member' }],
    ['a removed member’s certificate', 3, { id: 3, memberState: 'removed' }],
    ['an unknown certificate, as none', 4, undefined],
  ] as const)
    it(`is found by ${whose}`, () => expect(listedNode(list, fingerprint(certificate))).to.deep.equal(expected));

  it('keeps the old certificate until the node has used the new one, so a lost answer locks no node out', () => {
    const signed = certificateSigned({ members: [member(1)], removed: [] }, 1, fingerprint(10));
    expect(listedNode(signed, fingerprint(1))?.memberState).to.equal('member');
    expect(listedNode(signed, fingerprint(10))?.memberState).to.equal('member');
    const shown = certificateShown(signed, 1, fingerprint(10));
    expect(shown.members).to.deep.equal([member(1, { certificate: fingerprint(10) })]);
    expect(listedNode(shown, fingerprint(1))).to.equal(undefined);
  });

  it('replaces a renewed certificate that never arrived with the next certificate', () => {
    const once = certificateSigned({ members: [member(1)], removed: [] }, 1, fingerprint(10));
    const again = certificateSigned(once, 1, fingerprint(11));
    expect(listedNode(again, fingerprint(10))).to.equal(undefined);
    expect(listedNode(again, fingerprint(11))?.memberState).to.equal('member');
  });

  it('changes nothing when there is nothing to change', () => {
    expect(certificateShown(list, 1, fingerprint(1))).to.equal(list);
    expect(certificateShown(list, 1, fingerprint(20))).to.equal(list);
    expect(certificateSigned(list, 9, fingerprint(90))).to.equal(list);
    expect(memberRemoved(list, 9)).to.equal(list);
  });

  it('appends a removed member to the members removed before', () => {
    expect(memberRemoved(list, 1)).to.deep.equal({ members: [list.members[1]], removed: [removed(3), removed(1)] });
  });
});

describe('host and port', () => {
  for (const [address, expected] of [
    ['10.0.0.1:8201', { host: '10.0.0.1', port: 8201 }],
    ['node-1.internal:1', { host: 'node-1.internal', port: 1 }],
    ['[::1]:65535', { host: '::1', port: 65_535 }],
    ['::1:8201', undefined],
    [':8201', undefined],
    ['host:0', undefined],
    ['host:65536', undefined],
    ['https://host:1', undefined],
    ['user@host:1', undefined],
    ['host: 1', undefined],
    ['node-1.0:8201', undefined],
    ['1.2.3.999:8201', undefined],
    ['x^y:8201', undefined],
    ['host?:8201', undefined],
    ['host\\:8201', undefined],
    ['[1::2::3]:8201', undefined],
  ] as const)
    it(`of ${address}`, () => expect(parseHostAndPort(address)).to.deep.equal(expected));
});
