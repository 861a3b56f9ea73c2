import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { encodeKeyRecord } from '../../src/keys/key-record.ts';
import { backupSteps, decodeBackup, encodeBackup } from '../../src/transfers/backup.ts';
import { parseMembers } from '../../src/transfers/peer-members.ts';
import { base64, newEngine, paths, refusalOf, storedKey, storedVersion } from '../fixtures.ts';

const secret = Buffer.alloc(32, 7).toString('base64');
/** Most bytes of a backup that fits into a body of 32 MiB as base64. */
const backupBytesMax = ((32 * 1024 * 1024 - 1024) / 4) * 3;

/** A version as the peers write it. */
const entry = {
  key: secret,
  hmac_key: secret,
  time: '2024-05-01T01:02:03.123456789Z',
  ec_x: null,
  ec_y: null,
  ec_d: null,
  rsa_key: null,
  public_key: '',
  convergent_version: 0,
  creation_time: 1_714_525_323,
};

/** Returns the JSON of a peer's backup with the versions of `keys`. */
const peerJson = (keys: string, archived: string, latest: number): string =>
  `{"policy":{"name":"k","type":0,"latest_version":${latest},"min_decryption_version":1,"keys":${keys}},"archived_keys":${archived}}`;

/** Returns a backup of this program with `count` versions, all with the same material. */
async function ownBackup(count: number | 'most'): Promise<{ readonly bytes: Buffer; readonly versions: number }> {
  const { engine, store } = newEngine();
  await engine.createKey('k', { exportable: true, allowPlaintextBackup: true });
  const [record, first] = [await storedKey(store, 'k'), await storedVersion(store, 'k', 1)];
  const backupOf = (versions: number): Buffer =>
    encodeBackup(
      'k',
      { ...record, latestVersion: versions },
      Array.from({ length: versions }, (_, at) => ({ ...first, version: at + 1 })),
    );
  const sizes = [1, 2].map((versions) => backupOf(versions).length) as [number, number];
  const versions = count === 'most' ? Math.floor((backupBytesMax - sizes[0]) / (sizes[1] - sizes[0])) : count;
  return { bytes: backupOf(versions), versions };
}

/** Returns a backup of this program with these parts, whatever they are. */
function ownOf(parts: readonly Buffer[]): string {
  const framed = parts.flatMap((part) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(part.length);
    return [length, part];
  });
  const content = Buffer.concat([Buffer.of(1), ...framed]);
  return Buffer.concat([content, createHash('sha256').update(content).digest()]).toString('base64');
}

/** Counts the calls of JSON.parse during `work`. */
async function parsedDuring(work: () => Promise<unknown>): Promise<number> {
  const { parse } = JSON;
  let calls = 0;
  JSON.parse = (text: string) => {
    calls += 1;
    return parse(text) as unknown;
  };
  try {
    await work();
  } finally {
    JSON.parse = parse;
  }
  return calls;
}

/** Counts the turns of the event loop during `work`, while each look at the clock takes a millisecond: a slice has four looks. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  const { now } = performance;
  let [looks, turns, isOver] = [0, 0, false];
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  performance.now = () => looks++;
  setImmediate(count);
  try {
    await work();
  } finally {
    isOver = true;
    performance.now = now;
  }
  return turns;
}

describe('the limits of a backup', () => {
  for (const [what, json] of [
    ['millions of certificates of a version', peerJson(`{"1":{"certificate_chain":[${'"",'.repeat(4_900_000)}""]}}`, 'null', 1)],
    ['hundreds of thousands of archived versions', peerJson('{}', `{"keys":[${'{},'.repeat(300_000)}{}]}`, 1)],
    ['a version with many fields', peerJson(`{"1":{${Array.from({ length: 200 }, (_, n) => `"f${n}":0`).join()}}}`, 'null', 1)],
    ['a long text', peerJson(`{"1":{"key":"${'A'.repeat(100_000)}"}}`, 'null', 1)],
    ['a long number', peerJson(`{"1":{"ec_x":${'1'.repeat(100_000)}}}`, 'null', 1)],
    ['many levels', peerJson('['.repeat(1000), 'null', 1)],
  ] as const)
    it(`refuse ${what} in a peer's backup before anything of it is parsed`, async () => {
      const backup = base64(json);
      let refused = '';
      const parsed = await parsedDuring(async () => {
        refused = (await refusalOf(decodeBackup(backup))).message;
      });
      expect(refused).to.equal('the backup cannot be restored: it is not JSON of the expected structure');
      expect(parsed).to.equal(0);
    });

  it('refuse more certificates of a version than a chain may have', async () => {
    const keys = JSON.stringify({ 1: { ...entry, certificate_chain: Array(17).fill('') } });
    const { message } = await refusalOf(decodeBackup(base64(peerJson(keys, 'null', 1))));
    expect(message).to.contain('its member certificate_chain has the wrong type');
  });

  it('decode nothing after the first version that is malformed', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', {});
    const settings = Buffer.from(JSON.stringify({ format: 1, ...(await storedKey(store, 'k')) }));
    const backup = ownOf([Buffer.from('k'), settings, ...Array<Buffer>(500_000).fill(Buffer.alloc(0))]);
    const { subarray } = Buffer.prototype;
    let views = 0;
    Buffer.prototype.subarray = function (this: Buffer, ...range: [number?, number?]) {
      views += 1;
      return subarray.apply(this, range);
    };
    try {
      expect((await refusalOf(decodeBackup(backup))).code).to.equal('invalid_request');
    } finally {
      Buffer.prototype.subarray = subarray;
    }
    expect(views).to.be.below(100);
  });

  for (const [what, parts] of [
    ['name', [Buffer.alloc(5000, 'k'), Buffer.from('{}')]],
    ['settings', [Buffer.from('k'), Buffer.from(`{"a":[${'0,'.repeat(1_000_000)}0]}`)]],
  ] as const)
    it(`refuse overlong ${what} without parsing it`, async () => {
      const parsed = await parsedDuring(async () => {
        expect((await refusalOf(decodeBackup(ownOf(parts)))).message).to.contain('its name or settings are too long');
      });
      expect(parsed).to.equal(0);
    });

  it('refuse a long version without parsing it', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', {});
    const settings = Buffer.from(JSON.stringify({ format: 1, ...(await storedKey(store, 'k')) }));
    const header = Buffer.from(`{"a":[${'0,'.repeat(1_000_000)}0]}`);
    const record = Buffer.concat([Buffer.alloc(5), header]);
    record.writeUInt8(1, 0);
    record.writeUInt32BE(header.length, 1);
    const parsed = await parsedDuring(async () => {
      expect((await refusalOf(decodeBackup(ownOf([Buffer.from('k'), settings, record])))).message).to.contain('too long');
    });
    expect(parsed, 'the settings only').to.equal(1);
  });

  it('let other work run while the versions of a backup of this program are decoded, and while they are checked', async () => {
    const { bytes } = await ownBackup(2000);
    expect(await turnsDuring(() => decodeBackup(bytes.toString('base64')))).to.be.at.least(2 * (2000 / 5));
  });

  it('let other work run while the versions of a peer are collected, recognized, decoded and checked', async () => {
    const keys = Object.fromEntries(Array.from({ length: 2000 }, (_, at) => [at + 1, entry]));
    const json = peerJson(JSON.stringify(keys), 'null', 2000)
      .replace('"type":0', '"type":10')
      .replace('"name"', '"key_size":32,"name"');
    const parsing = await turnsDuring(() => parseMembers(Buffer.from(json)));
    expect(await turnsDuring(() => decodeBackup(base64(json)))).to.be.at.least(parsing + 4 * (2000 / 5));
  });

  it('let other work run while a backup is made and its checksum computed', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', {});
    const [record, first] = [await storedKey(store, 'k'), await storedVersion(store, 'k', 1)];
    const versions = Array.from({ length: 1000 }, (_, at) => ({ ...first, version: at + 1 }));
    expect([...backupSteps('k', record, versions)].length).to.be.at.least(2 * 1000 + 1);
  });

  it('admit the largest backup of this program that fits into a request', async () => {
    const { bytes, versions } = await ownBackup('most');
    expect(versions).to.be.above(150_000);
    const { engine, store } = newEngine();
    await engine.transfers.restoreKey({ backup: bytes.toString('base64') });
    expect((await storedKey(store, 'k')).latestVersion).to.equal(versions);
    expect((await storedVersion(store, 'k', versions)).material).to.have.lengthOf(32);
  });

  it('admit the largest backup of a peer that fits into a request', async () => {
    const text = JSON.stringify(entry);
    const count = Math.floor(backupBytesMax / (2 * text.length + '"123456":,,'.length));
    const keys = `{${Array.from({ length: count }, (_, at) => `"${at + 1}":${text}`).join()}}`;
    const archived = `{"keys":[${Array<string>(count + 1)
      .fill(text)
      .join()}]}`;
    const { versions } = await decodeBackup(base64(peerJson(keys, archived, count)));
    expect(versions.length).to.equal(count).and.be.above(40_000);
  });

  it('refuse to make a backup that no restore would accept', async () => {
    const { engine, store } = newEngine();
    await engine.createKey('k', { exportable: true, allowPlaintextBackup: true });
    const record = { ...(await storedKey(store, 'k')), latestVersion: 2 ** 18 + 1 };
    await store.commit({ conditions: [], writes: [{ path: paths.key('k'), value: encodeKeyRecord(record) }] });
    expect((await refusalOf(newEngine({ store }).engine.transfers.backupKey('k'))).message).to.contain('trim it first');
  });
});
