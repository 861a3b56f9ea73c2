import type { VersionView } from '@transitd/transit-engine';
import { expect } from 'chai';
import fc from 'fast-check';
import { versionsJson } from '../../src/transit/versions-json.ts';

const view = (version: number, createdMs = version * 1000): VersionView => ({ version, createdMs });
const views = (first: number, count: number): VersionView[] => Array.from({ length: count }, (_, i) => view(first + i));
const asObject = (versions: readonly VersionView[]): string =>
  JSON.stringify(Object.fromEntries(versions.map(({ version, createdMs }) => [version, Math.floor(createdMs / 1000)])));

describe('versions as JSON', () => {
  it('are the JSON of an object, wherever the versions begin and end, also when they are shown again with more versions', () =>
    fc.assert(
      fc.property(fc.nat(600), fc.nat(1200), fc.nat(300), fc.nat(300), (first, count, later, dropped) => {
        const all = views(first + 1, count);
        expect(versionsJson(all)).to.equal(asObject(all));
        const more = [...all, ...views(first + 1 + count, later)];
        expect(versionsJson(more)).to.equal(asObject(more));
        expect(versionsJson(more.slice(dropped))).to.equal(asObject(more.slice(dropped)));
      }),
    ));

  it('are made again when the versions were read again', () => {
    const before = views(1, 1024);
    const after = before.map(({ version }) => view(version, version * 2000));
    expect(versionsJson(before)).to.equal(asObject(before));
    expect(versionsJson(after)).to.equal(asObject(after));
  });

  it('skip versions that do not exist', () => {
    const some = views(1, 1024).filter(({ version }) => version % 3 !== 0);
    expect(versionsJson(some)).to.equal(asObject(some));
  });

  it('have the public parts of key pairs', () => {
    const pair = { name: 'ed25519', publicKey: 'a', hybridPublicKey: '', certificateChain: '' };
    expect(JSON.parse(versionsJson([{ version: 7, createdMs: 0, pair }]))).to.deep.equal({
      7: {
        name: 'ed25519',
        public_key: 'a',
        hybrid_public_key: '',
        certificate_chain: '',
        creation_time: '1970-01-01T00:00:00.000Z',
      },
    });
  });
});
