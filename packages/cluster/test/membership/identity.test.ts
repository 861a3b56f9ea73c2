import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { makeAuthority, makeRequest, signRequest } from '../../src/membership/authority.ts';
import { type NodeIdentity, readIdentity, writeIdentity } from '../../src/membership/identity.ts';

const clusterId = '6b7c6f0e-2f0b-4c34-9d6b-0f8c1d2e3a4b';

async function makeIdentity(): Promise<NodeIdentity> {
  const now = new Date();
  const authority = await makeAuthority(clusterId, now);
  const { key, request } = await makeRequest(7);
  const certificate = await signRequest(authority, { request, nodeId: 7, clusterId, now });
  const addresses = { apiAddress: 'https://10.0.0.1:8200', clusterAddress: '10.0.0.1:8201' };
  const seed = {
    id: 9,
    name: 'nine',
    ...addresses,
    certificate: 'ab'.repeat(32),
    nonVoter: false,
    levels: { oldest: 1, newest: 1 },
  };
  return { key, certificate, authority: authority.certificate, membersAtJoin: [seed] };
}

describe('a node’s identity', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'identity-'));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it('is undefined before the node has joined', async () => {
    expect(await readIdentity(directory)).to.equal(undefined);
  });

  it('is read as it was written, and only its owner can access the file', async () => {
    const identity = await makeIdentity();
    await writeIdentity(directory, identity);
    expect(await readIdentity(directory)).to.deep.equal(identity);
    expect(statSync(join(directory, 'identity.json')).mode & 0o777).to.equal(0o600);
    expect(readdirSync(directory)).to.deep.equal(['identity.json']);
  });

  it('replaces an earlier identity, also after an interrupted write', async () => {
    await writeIdentity(directory, await makeIdentity());
    writeFileSync(join(directory, 'identity.json.new'), 'half', { mode: 0o644 });
    const renewed = await makeIdentity();
    await writeIdentity(directory, renewed);
    expect(await readIdentity(directory)).to.deep.equal(renewed);
    expect(statSync(join(directory, 'identity.json')).mode & 0o777).to.equal(0o600);
  });

  for (const [what, damage] of [
    ['is cut short', (text: string) => text.slice(0, -20)],
    ['has another format', (text: string) => text.replace('"format": 1', '"format": 2')],
    ['has no seeds', (text: string) => text.replace('"seeds"', '"sed"')],
    ['has a malformed member', (text: string) => text.replace('10.0.0.1:8201', 'nowhere')],
  ] as const)
    it(`stops the start when the file ${what}, without repeating its content`, async () => {
      await writeIdentity(directory, await makeIdentity());
      const path = join(directory, 'identity.json');
      writeFileSync(path, damage(readFileSync(path, 'utf8')));
      const error = await readIdentity(directory).catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(StartError);
      expect((error as Error).message).to.equal(`${path} is damaged or of an unknown format`);
    });

  it('stops the start when key, certificate and authority do not belong together', async () => {
    const [one, two] = [await makeIdentity(), await makeIdentity()];
    for (const mixed of [
      { ...one, key: two.key },
      { ...one, authority: two.authority },
    ]) {
      await writeIdentity(directory, mixed);
      expect(await readIdentity(directory).catch((thrown: unknown) => thrown)).to.be.instanceOf(StartError);
    }
  });

  it('stops the start when other users could read it', async () => {
    await writeIdentity(directory, await makeIdentity());
    chmodSync(join(directory, 'identity.json'), 0o640);
    expect(await readIdentity(directory).catch((thrown: unknown) => thrown)).to.be.instanceOf(StartError);
  });
});
