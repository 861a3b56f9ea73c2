import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { closeKeyring, newKeyring } from '../../src/keyring/keyring.ts';
import { BarrierError } from '../../src/records/errors.ts';
import { keyringPath, sealPath } from '../../src/records/paths.ts';
import { requireOpenable } from '../../src/seal/require-openable.ts';
import { newWrappingKey, sealWrites } from '../../src/seal/root-key-wrapping.ts';
import type { SealConfig } from '../../src/seal/seal-config.ts';
import { hashShare, newSharedKey } from '../../src/seal/shares.ts';

const staticSeal = (id: string, key = randomBytes(32)): Extract<SealConfig, { type: 'static' }> => ({
  type: 'static',
  current: { id, key },
});

describe('requireOpenable', () => {
  async function recordsOf(seal: SealConfig): Promise<ReadonlyMap<string, Uint8Array>> {
    const rootKey = randomBytes(32);
    const counts = { shares: 1, threshold: 1 };
    const shared = await newSharedKey(counts);
    const keyring = newKeyring({ installedMs: 1_700_000_000_000, valuesAtInstall: 0 });
    const wrapping = await newWrappingKey(seal, shared.key);
    const [record] = sealWrites({ counts, shareHashes: shared.shares.map(hashShare), wrapping, rootKey }, keyring.newest);
    return new Map([
      [sealPath, record.value],
      [keyringPath, closeKeyring(rootKey, keyring)],
    ]);
  }
  const codeOf = async (seal: SealConfig, records: ReadonlyMap<string, Uint8Array>): Promise<string> => {
    try {
      await requireOpenable(seal, records);
      return 'openable';
    } catch (error) {
      return error instanceof BarrierError ? error.code : String(error);
    }
  };

  it('accepts a static key that wraps the root key, current or previous', async () => {
    const own = staticSeal('a');
    const records = await recordsOf(own);
    expect(await codeOf(own, records)).to.equal('openable');
    expect(await codeOf({ ...staticSeal('b'), previous: own.current }, records)).to.equal('openable');
  });

  it('refuses another key, with the same or another id, and a seal of another type', async () => {
    const records = await recordsOf(staticSeal('a'));
    expect(await codeOf(staticSeal('a'), records)).to.equal('barrier_corrupt');
    expect(await codeOf(staticSeal('b'), records)).to.equal('seal_mismatch');
    expect(await codeOf({ type: 'shamir' }, records)).to.equal('seal_mismatch');
    expect(await codeOf(staticSeal('a'), await recordsOf({ type: 'shamir' }))).to.equal('seal_mismatch');
  });

  it('accepts any Shamir seal, since it cannot check the shares', async () => {
    expect(await codeOf({ type: 'shamir' }, await recordsOf({ type: 'shamir' }))).to.equal('openable');
  });

  it('refuses a missing record, or a keyring of another root key', async () => {
    const seal = staticSeal('a');
    const [records, other] = [await recordsOf(seal), await recordsOf(seal)];
    for (const path of [sealPath, keyringPath])
      expect(await codeOf(seal, new Map([...records].filter(([one]) => one !== path)))).to.equal('barrier_corrupt');
    expect(await codeOf(seal, new Map([...records, [keyringPath, other.get(keyringPath) ?? Buffer.alloc(0)]]))).to.equal(
      'barrier_corrupt',
    );
  });
});
