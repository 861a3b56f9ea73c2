import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
import { type Key, keyIn, useOf } from '../app/keys/key.ts';
import { base64, bodyOf, operations, textOf } from '../app/keys/operations.ts';
import { agingPreview, minimumsPreview, rotationPreview, trimPreview } from '../app/keys/previews.ts';
import { languages, shellQuoted, snippet } from '../app/keys/snippets.ts';

/** A key with the versions from `minAvailable` (or 1) to `latest`, as the API shows it. */
function keyOf({ latest = 5, minAvailable = 0, minDecryption = 1, minEncryption = 0, next = {} }): Key {
  const first = Math.max(1, minAvailable);
  const versions = Array.from({ length: latest - first + 1 }, (_, n) => [String(first + n), 1_700_000_000 + n] as const);
  return keyIn({
    name: 'orders',
    type: 'aes256-gcm96',
    latest_version: latest,
    min_available_version: minAvailable,
    min_decryption_version: minDecryption,
    min_encryption_version: minEncryption,
    next_version: next,
    // As in the API: versions below the minimum for decryption are not shown.
    keys: Object.fromEntries(versions.filter(([version]) => Number(version) >= minDecryption)),
  });
}

describe('the preview of a change of a key', () => {
  it('of a rotation names the new version, and what callers of the old one lose', () => {
    const { works, stops, refused } = rotationPreview(keyOf({}));
    expect(works[0]).to.equal('Version 6 is created, and new ciphertexts, signatures and MACs use it.');
    expect(stops).to.deep.equal([
      'Callers that request version 5 for encrypting or signing are refused: only the latest version may.',
    ]);
    expect(refused).to.deep.equal([]);
    expect(rotationPreview(keyOf({ minEncryption: 3 })).stops).to.deep.equal([]);
  });

  it('of a rotation names the versions that the settings of the key retire', () => {
    const next = { min_decryption_version: 3, min_encryption_version: 5 };
    expect(rotationPreview(keyOf({ minDecryption: 2, minEncryption: 4, next })).stops).to.deep.equal([
      'Version 4 can no longer be requested for encrypting or signing.',
      'Ciphertexts of version 2 no longer decrypt; their signatures and MACs no longer verify.',
    ]);
  });

  it('of limits for versions names what they take away at once, with each rotation and for good', () => {
    const off = { keepEncryption: 0, keepDecryption: 0, trimAfterS: 0 };
    expect(agingPreview(keyOf({}), off)).to.deep.include({ works: [], stops: [], refused: [], deletes: false });
    const { works, stops, deletes } = agingPreview(keyOf({ minEncryption: 3 }), {
      keepEncryption: 1,
      keepDecryption: 2,
      trimAfterS: 7200,
    });
    expect(works).to.deep.equal([
      'Each new version leaves the newest 2 for decrypting and verifying.',
      'Each new version leaves the newest 1 for encrypting and signing.',
    ]);
    expect(stops).to.deep.equal([
      'Ciphertexts of versions 1 to 3 no longer decrypt; their signatures and MACs no longer verify.',
      'Versions 3 to 4 can no longer be requested for encrypting or signing.',
      'Versions that no longer decrypt are deleted permanently after 2 h.',
      'Versions 1 to 3 would be next.',
    ]);
    expect(deletes).to.equal(true);
    expect(agingPreview(keyOf({}), { ...off, keepEncryption: 3, keepDecryption: 2 }).refused).to.have.length(1);
  });

  it('of higher minimums names the versions that stop working', () => {
    const { stops, refused } = minimumsPreview(keyOf({ minEncryption: 2 }), 3, 4);
    expect(stops).to.deep.equal([
      'Ciphertexts of versions 1 to 2 no longer decrypt; their signatures and MACs no longer verify.',
      'Versions 2 to 3 can no longer be requested for encrypting or signing.',
    ]);
    expect(refused).to.deep.equal([]);
  });

  it('of lower minimums names the versions that work again', () => {
    const { works, stops } = minimumsPreview(keyOf({ minDecryption: 4 }), 2, 0);
    expect(works).to.deep.equal(['Ciphertexts, signatures and MACs of versions 2 to 3 work again.']);
    expect(stops).to.deep.equal([]);
  });

  for (const [decryption, encryption, says] of [
    [6, 0, /latest version is 5/],
    [3, 2, /must be 0, or at least/],
  ] as const)
    it(`says that the minimums ${decryption} and ${encryption} would be refused`, () =>
      expect(minimumsPreview(keyOf({}), decryption, encryption).refused.join()).to.match(says));

  it('of a trim names the versions that are deleted, and the minimums that must be set first', () => {
    expect(trimPreview(keyOf({ minDecryption: 3, minEncryption: 3 }), 3)).to.deep.include({
      stops: ['The material of versions 1 to 2 is deleted permanently. Nothing brings it back but a backup.'],
      refused: [],
    });
    expect(trimPreview(keyOf({}), 3).refused).to.have.length(2);
    expect(trimPreview(keyOf({ minAvailable: 3, minDecryption: 3, minEncryption: 3 }), 3).refused).to.have.length(1);
  });

  it('knows a key that is soft-deleted, and disabled versions with their reasons', () => {
    const { isSoftDeleted, deletionDueMs, disabled } = keyIn({
      soft_deleted: true,
      scheduled_deletion: { due_time: '2026-01-02T03:04:05.006Z' },
      disabled_versions: { 2: { reason: 'leaked', time: '' }, 3: null },
    });
    expect(isSoftDeleted).to.equal(true);
    expect(deletionDueMs).to.equal(Date.parse('2026-01-02T03:04:05.006Z'));
    expect([...disabled]).to.deep.equal([
      [2, 'leaked'],
      [3, ''],
    ]);
    expect(keyIn({})).to.deep.include({ isSoftDeleted: false, deletionDueMs: undefined, disabled: new Map() });
  });

  it('follows the use of each version', () => {
    const uses = (key: Key) => key.versions.map(({ version }) => useOf(version, key));
    expect(uses(keyOf({ minDecryption: 3 }))).to.deep.equal(['nothing', 'nothing', 'decrypts', 'decrypts', 'encrypts']);
    expect(uses(keyOf({ minEncryption: 4 }))).to.deep.equal(['decrypts', 'decrypts', 'decrypts', 'encrypts', 'encrypts']);
  });
});

describe('the samples of a request', () => {
  const hostile = `'"\`$(id)\\\n</script>{}\u2028 ; é 😀`;

  it('quote any text for the shell', () => {
    const { stdout } = spawnSync('sh', ['-c', `printf %s ${shellQuoted(hostile)}`], { encoding: 'utf8' });
    expect(stdout).to.equal(hostile);
  });

  it('contain hostile texts only as values', () => {
    const sampled = { origin: 'http://127.0.0.1:1', path: 'transit/encrypt/k', body: { ciphertext: hostile } };
    const python = snippet('Python', sampled).replace(/^with[\s\S]*/m, 'print(json.dumps(json.loads(request.data)))');
    const read = spawnSync('python3', ['-c', python], { encoding: 'utf8', env: { ...process.env, TRANSITD_TOKEN: 'x' } });
    expect(read.stderr).to.equal('');
    expect(JSON.parse(read.stdout)).to.deep.equal(sampled.body);
    const literal = /JSON\.stringify\((\{[\s\S]*?\})\),\n/.exec(snippet('TypeScript', sampled))?.[1] ?? '';
    expect(JSON.parse(literal)).to.deep.equal(sampled.body);
  });

  it('never contain a token', () => {
    for (const language of languages) expect(snippet(language, { origin: 'x', path: 'y', body: {} })).to.match(/TRANSITD_TOKEN/);
  });

  it('carry texts as base64 of their UTF-8', () => {
    const [encrypt] = operations;
    if (encrypt === undefined) throw new Error('no operation');
    expect(bodyOf(encrypt, { plaintext: 'é' }, 'ctx')).to.deep.equal({ plaintext: 'w6k=', context: 'Y3R4' });
    expect(textOf(base64(hostile))).to.equal(hostile);
    expect(textOf('/w==')).to.equal(undefined);
  });
});
