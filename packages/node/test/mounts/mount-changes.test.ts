import { expect } from 'chai';
import fc from 'fast-check';
import {
  disableMount,
  enableMount,
  type MountTuning,
  mountsMax,
  moveMount,
  movesMax,
  tuneMount,
} from '../../src/mounts/mount-changes.ts';
import { type MountTable, newMount } from '../../src/mounts/mounts.ts';

const tableOf = (...paths: string[]): MountTable => ({ mounts: paths.map((path) => newMount(path, 'svc')), moves: [] });
const pathsOf = ({ mounts }: MountTable): string[] => mounts.map(({ path }) => path);
const transit = (path: string) => ({ path, type: 'transit' });

describe('changes of the mount table', () => {
  for (const { path, type = 'transit', says } of [
    { path: 'x', type: '', says: 'backend type must be specified as a string' },
    { path: 'x', type: 'kv', says: 'plugin not found in the catalog: kv' },
    { path: 'sys', says: 'cannot mount "sys/"' },
    { path: 'sys/mine', says: 'cannot mount "sys/mine/"' },
    { path: 'auth', says: 'cannot mount "auth/"' },
    { path: 'auth/mine', says: 'cannot mount "auth/mine/"' },
    { path: 'transit', says: 'path is already in use at transit/' },
    { path: 'transit/below', says: 'path is already in use at transit/' },
    { path: 'team', says: 'path is already in use at team/transit/' },
    { path: 'a b', says: /invalid mount path/ },
    { path: 'a*', says: /invalid mount path/ },
    { path: 'a/+/b', says: /invalid mount path/ },
    { path: '', says: /invalid mount path/ },
    { path: 'a//b', says: /invalid mount path/ },
    { path: '../a', says: /invalid mount path/ },
    { path: 'x'.repeat(257), says: /at most 256 characters/ },
    { path: 'a/tune', says: /it ends with "\/tune"/ },
  ]) {
    it(`does not enable ${type || 'nothing'} at ${path.slice(0, 20)}: ${says}`, () => {
      expect(() => enableMount(tableOf('transit', 'team/transit'), { path, type }, 'svc')).to.throw(says);
    });
  }

  for (const path of ['trans', 'transit2', 'team/other', 'system', 'tune', 'x'.repeat(256)]) {
    it(`enables an engine at ${path.slice(0, 20)}`, () => {
      const table = enableMount(tableOf('transit', 'team/transit'), transit(path), 'svc');
      expect(pathsOf(table)).to.deep.equal(['transit', 'team/transit', path]);
    });
  }

  it('gives each mount a new id, also at a path that was used before', () => {
    const first = enableMount(tableOf(), transit('a'), 'svc');
    const second = enableMount(disableMount(first, 'a') ?? tableOf('a'), transit('a'), 'svc');
    expect(second.mounts[0]?.id).not.to.equal(first.mounts[0]?.id);
  });

  it('refuses more mounts than the limit', () => {
    const full = tableOf(...Array.from({ length: mountsMax }, (_, i) => `m${i}`));
    expect(() => enableMount(full, transit('more'), 'svc')).to.throw(`the maximum of ${mountsMax} mounts`);
  });

  it('returns the id of a removed mount, and undefined when nothing is mounted at the path', () => {
    const table = tableOf('a', 'b');
    const next = disableMount(table, 'a');
    expect(next?.removed).to.equal(table.mounts[0]?.id);
    expect(next && pathsOf(next)).to.deep.equal(['b']);
    expect(disableMount(table, 'c')).to.equal(undefined);
    expect(() => disableMount(table, 'sys')).to.throw('cannot unmount "sys/"');
  });

  for (const { from, to, says } of [
    { from: 'none', to: 'x', says: 'No secret engine mount at none/' },
    { from: 'a', to: 'b', says: 'path is already in use at b/' },
    { from: 'a', to: 'b/c', says: 'path is already in use at b/' },
    { from: 'a', to: 'a', says: 'path is already in use at a/' },
    { from: 'sys', to: 'x', says: 'cannot remount "sys/"' },
    { from: 'a', to: 'auth/x', says: 'cannot remount "auth/x/"' },
    { from: 'a', to: 'x y', says: /invalid mount path/ },
    { from: 'a', to: 'x/tune', says: /it ends with "\/tune"/ },
  ]) {
    it(`does not move ${from} to ${to}: ${says}`, () => {
      expect(() => moveMount(tableOf('a', 'b'), { from, to })).to.throw(says);
    });
  }

  it('moves a mount with its settings, even to a path below its former one, and remembers the last moves', () => {
    let table = tuneMount(tableOf('a', 'b'), 'a', { description: 'mine' });
    const [before] = table.mounts;
    for (let i = 0; i <= movesMax; i++)
      table = moveMount(table, i % 2 === 0 ? { from: 'a', to: 'a/b' } : { from: 'a/b', to: 'a' });
    expect(table.mounts[0]).to.deep.equal({ ...before, path: 'a/b' });
    expect(table.moves).to.have.length(movesMax);
    expect(table.moves[0]).to.include({ from: 'a/b', to: 'a' });
  });

  for (const { tuning, says } of [
    { tuning: { description: 'x'.repeat(1025) }, says: 'at most 1024 characters' },
    { tuning: { options: { a: 'x'.repeat(4096) } }, says: 'at most 4096 characters' },
    { tuning: { ciphertextPrefix: 'A' }, says: 'ciphertext_prefix has' },
    { tuning: { ciphertextPrefix: 'a:v1:' }, says: 'ciphertext_prefix has' },
    { tuning: { defaultTtlS: 61, maxTtlS: 60 }, says: 'default_lease_ttl must be at most max_lease_ttl' },
    { tuning: { allowedManagedKeys: Array.from({ length: 129 }, () => 'k') }, says: 'allowed_managed_keys has at most 128' },
    { tuning: { allowedManagedKeys: ['k'.repeat(129)] }, says: 'of at most 128 characters' },
  ] satisfies { tuning: MountTuning; says: string }[]) {
    it(`refuses in enable and in tune: ${says}`, () => {
      expect(() => enableMount(tableOf(), { ...transit('a'), ...tuning }, 'svc')).to.throw(says);
      expect(() => tuneMount(tableOf('a'), 'a', tuning)).to.throw(says);
    });
  }

  it('changes only the given settings, and never the path or the id', () => {
    const table = tableOf('a');
    const once = tuneMount(table, 'a', { description: 'one', maxTtlS: 60, options: { version: '1' }, allowedManagedKeys: ['k'] });
    const given = { path: 'other', id: 'other', description: undefined, maxTtlS: 0 };
    const twice = tuneMount(once, 'a', given);
    expect(twice.mounts[0]).to.deep.equal({
      ...table.mounts[0],
      description: 'one',
      maxTtlS: 0,
      options: { version: '1' },
      allowedManagedKeys: ['k'],
    });
    expect(() => tuneMount(table, 'b', {})).to.throw('No secret engine mount at b/');
  });

  it('never lets a path be a prefix of another, after any sequence of changes', () => {
    const path = fc.array(fc.constantFrom('a', 'b'), { minLength: 1, maxLength: 3 }).map((segments) => segments.join('/'));
    fc.assert(
      fc.property(fc.array(fc.record({ path, to: fc.option(path, { nil: undefined }) }), { maxLength: 12 }), (changes) => {
        let table = tableOf();
        for (const { path, to } of changes) {
          try {
            table = to === undefined ? enableMount(table, transit(path), 'svc') : moveMount(table, { from: path, to });
          } catch {}
        }
        const paths = pathsOf(table).map((each) => `${each}/`);
        for (const one of paths) expect(paths.filter((each) => each.startsWith(one))).to.deep.equal([one]);
      }),
    );
  });
});
