import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { prepareDev } from '../src/dev.ts';

describe('a --dev node', () => {
  let dataDir = '';
  const environment = { ...process.env };
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'transitd-dev-'));
  });
  afterEach(() => {
    for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name];
    rmSync(dataDir, { recursive: true });
  });

  it('ignores data directory and seal from the environment, and listens on the address of its options', () => {
    Object.assign(process.env, {
      TRANSITD_DATA_DIR: '/elsewhere',
      TRANSITD_LISTEN_ADDRESS: '127.0.0.1:1',
      TRANSITD_SEAL_TYPE: 'shamir',
      TRANSITD_LOG_LEVEL: 'error',
    });
    const { config } = prepareDev({ dataDir, listen: '127.0.0.1:2' });
    expect(config.data_dir).to.equal(join(dataDir, 'data'));
    expect(config.listeners.map(({ address }) => address.port)).to.deep.equal([2]);
    expect(config.seal).to.deep.equal({ type: 'static', key_id: 'dev', key_file: join(dataDir, 'dev/seal.key') });
    expect(config.log.level).to.equal('error');
    expect(prepareDev({ dataDir }).config.listeners[0]?.address.port).to.equal(1);
  });

  it('creates seal key and root token once, readable by their owner only', () => {
    const { dev } = prepareDev({ dataDir });
    expect(prepareDev({ dataDir }).dev).to.deep.equal(dev);
    for (const [path, mode] of [
      ['dev', 0o700],
      ['dev/seal.key', 0o600],
      ['dev/root-token', 0o600],
    ] as const)
      expect(statSync(join(dataDir, path)).mode & 0o777).to.equal(mode);
    expect(readFileSync(join(dataDir, 'dev/root-token'), 'utf8').trim()).to.equal(dev.rootToken);
  });

  for (const [path, mode] of [
    ['dev', 0o750],
    ['dev/seal.key', 0o640],
    ['dev/root-token', 0o604],
  ] as const) {
    it(`refuses ${path} if other users can access it`, () => {
      prepareDev({ dataDir });
      chmodSync(join(dataDir, path), mode);
      expect(() => prepareDev({ dataDir })).to.throw(StartError, /users other than its owner/);
    });
  }

  it('refuses a data directory that is a file', () => {
    const file = join(dataDir, 'file');
    writeFileSync(file, '');
    expect(() => prepareDev({ dataDir: file })).to.throw(StartError, /cannot be used: E/);
  });
});
