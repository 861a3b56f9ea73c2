import { expect } from 'chai';
import { keyType } from '../../src/keys/key-type.ts';
import type { KeyBackup } from '../../src/transfers/key-backup.ts';
import { PairChecks } from '../../src/transfers/pair-checks.ts';
import { newEngine, refusalOf, storedKey } from '../fixtures.ts';

const keyPairTypes = [
  ...['ed25519', 'ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521', 'rsa-2048', 'rsa-3072', 'rsa-4096'],
  ...['ml-dsa-44', 'ml-dsa-65', 'ml-dsa-87', 'hybrid-ml-dsa-44-ecdsa-p256', 'hybrid-ml-dsa-87-ed25519'],
];

describe('the checks of the key pairs of a backup', () => {
  const { keyPair } = keyType('rsa-2048');
  const cost = keyPair?.checkCost ?? { pair: 0, publicHalf: 0 };
  const costOfOne = cost.pair;
  let backup: Pick<KeyBackup, 'record' | 'versions'>;
  before(async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', { type: 'rsa-2048' });
    const { id: _, ...record } = await storedKey(store, 'k');
    const pairs = await Promise.all([1, 2, 3].map(() => keyPair?.generate()));
    const versions = pairs.map((pair, at) => {
      if (pair === undefined) throw new Error('RSA keys have pairs');
      return { version: at + 1, createdMs: 0, hmacSecret: Buffer.alloc(32), ...pair };
    });
    backup = { record, versions };
  });

  const messageOf = async (checks: PairChecks, given = backup): Promise<string> => {
    const { code, message } = await refusalOf(checks.check(given));
    return `${code}: ${message}`;
  };

  it('stop at their limit, and continue there when the same backup is sent again', async () => {
    const checks = new PairChecks(costOfOne);
    expect(await messageOf(checks)).to.match(/^busy_generation: 1 of 3 key versions of the backup are checked; nothing was done/);
    expect(await messageOf(checks)).to.match(/^busy_generation: 2 of 3 /);
    await checks.check(backup);
    await checks.check(backup);
  });

  it('check all versions at once within their limit', async () => {
    await new PairChecks(3 * costOfOne).check(backup);
    await new PairChecks().check(backup);
  });

  it('do not reuse the result for another private or public half', async () => {
    const checks = new PairChecks();
    await checks.check(backup);
    const [first, second] = backup.versions;
    if (first === undefined || second === undefined) throw new Error('there are three versions');
    const swapped = { ...first, publicKey: second.publicKey ?? Buffer.alloc(0) };
    const damaged = { ...first, material: Buffer.from(first.material) };
    damaged.material[damaged.material.length - 1] = (damaged.material.at(-1) ?? 0) ^ 1;
    for (const version of [swapped, damaged])
      for (let attempt = 0; attempt < 2; attempt += 1)
        expect(await messageOf(checks, { ...backup, versions: [version] })).to.match(
          /^invalid_request: .*version 1 is not a key pair/,
        );
  });

  it('do not take over the result for another type', async () => {
    const checks = new PairChecks();
    await checks.check(backup);
    const larger = { ...backup, record: { ...backup.record, type: 'rsa-4096' as const } };
    expect(await messageOf(checks, larger)).to.match(/^invalid_request: .*expected 512 bytes/);
  });

  it('stop and continue in the same way for public halves alone', async () => {
    const versions = backup.versions.map((version) => ({ ...version, material: Buffer.alloc(0) }));
    const halves = { ...backup, versions };
    const checks = new PairChecks(cost.publicHalf);
    expect(await messageOf(checks, halves)).to.match(/^busy_generation: 1 of 3 key versions/);
    expect(await messageOf(checks, halves)).to.match(/^busy_generation: 2 of 3 /);
    await checks.check(halves);
    expect(await messageOf(new PairChecks(0), halves)).to.match(/^busy_generation: 0 of 3 /);
  });

  it('check a public half of a managed key at the cost of its scheme', async () => {
    const managed = { ...backup.record, type: 'managed_key' };
    const versions = backup.versions.map((version) => ({ ...version, material: Buffer.alloc(16) }));
    const checks = new PairChecks(cost.publicHalf);
    expect(await messageOf(checks, { record: managed, versions })).to.match(/^busy_generation: 1 of 3 key versions/);
  });

  it('refuse an empty public half of a managed key', async () => {
    const managed = { ...backup.record, type: 'managed_key' };
    const [first] = backup.versions;
    if (first === undefined) throw new Error('there are three versions');
    const version = { ...first, material: Buffer.alloc(16), publicKey: Buffer.alloc(0) };
    expect(await messageOf(new PairChecks(), { record: managed, versions: [version] })).to.contain(
      'version 1 has a public half that managed keys do not support',
    );
  });

  it('check a number once, however many versions have it', async () => {
    const [first] = backup.versions;
    if (first === undefined) throw new Error('there are three versions');
    const versions = Array.from({ length: 1000 }, (_, at) => ({ ...first, version: at + 1 }));
    await new PairChecks(costOfOne).check({ ...backup, versions });
    const halves = versions.map((version) => ({ ...version, material: Buffer.alloc(0) }));
    await new PairChecks(cost.publicHalf).check({ ...backup, versions: halves });
  });

  for (const type of keyPairTypes)
    it(`cost something for every half of type ${type}`, () => {
      const { checkCost = { pair: 0, publicHalf: 0 } } = keyType(type).keyPair ?? {};
      expect(checkCost.publicHalf).to.be.above(0);
      expect(checkCost.pair).to.be.at.least(checkCost.publicHalf);
    });

  it('let a request restore 256 versions of 2,048 bits, and the same versions again', async () => {
    expect(32 / costOfOne, 'versions of 2,048 bits in one request').to.equal(256);
    const { engine } = newEngine();
    await engine.createKey('k', { type: 'rsa-2048', exportable: true, allowPlaintextBackup: true });
    const text = (await engine.transfers.backupKey('k')).toString('base64');
    const other = newEngine();
    await other.engine.transfers.restoreKey({ backup: text });
    await other.engine.transfers.restoreKey({ backup: text, force: true });
    expect(await other.engine.readKey('k')).to.include({ latestVersion: 1 });
  });
});
