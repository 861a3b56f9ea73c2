import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { runCommandLine } from '../../src/command-line.ts';
import { noLocalWork } from '../no-local-work.ts';

const policy = `
path "transit/encrypt/*" { capabilities = ["update"] denied_parameters = { key_version = [1] } }
path "transit/keys/" { capabilities = ["list"] }
path "transit/keys/+" { capabilities = ["update"] allowed_parameters = { exportable = [false] type = [] } }
path "transit/sign/k/sha1" { capabilities = ["deny"] }
path "transit/export/*" { capabilities = ["read"] min_wrapping_ttl = "1m" }
`;

describe('transitd policy test', () => {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-policy-'));
  const file = join(folder, 'p.hcl');
  writeFileSync(file, policy);
  writeFileSync(join(folder, 'broken.hcl'), 'path "a" { capabilities = ["fly"] }');
  after(() => rmSync(folder, { recursive: true }));

  /** Returns the exit code and the output. */
  async function run(...argv: readonly string[]): Promise<readonly [number, string]> {
    const printed: string[] = [];
    const { log, error } = console;
    console.log = (line: string) => void printed.push(line);
    console.error = console.log;
    try {
      return [await runCommandLine(['policy', 'test', ...argv], noLocalWork), printed.join('\n')];
    } finally {
      Object.assign(console, { log, error });
    }
  }

  for (const [request, code] of [
    [['transit/encrypt/k', 'update'], 0],
    [['/transit/encrypt/k', 'update', 'plaintext=AAAA'], 0],
    [['transit/encrypt/k', 'update', 'key_version=1'], 2],
    [['transit/encrypt/k', 'update', 'key_version="0x1"'], 2],
    [['transit/encrypt/k', 'create'], 2],
    [['transit/keys', 'list'], 0],
    [['transit/keys/', 'list'], 0],
    [['transit/keys/k', 'update', 'exportable=false', 'type=ed25519'], 0],
    [['transit/keys/k', 'update', 'exportable=true'], 2],
    [['transit/keys/k', 'update', 'name=a=b'], 2],
    [['transit/sign/k/sha1', 'update'], 2],
    [['transit/export/encryption-key/k', 'read'], 2],
    [['nowhere', 'read'], 2],
  ] as const)
    it(`exits with ${code} for ${request.join(' ')}`, async () => {
      expect(await run(file, ...request)).to.deep.equal([code, code === 0 ? 'allowed' : 'denied']);
    });

  for (const [argv, says] of [
    [[join(folder, 'none.hcl'), 'a', 'read'], /none\.hcl cannot be read: ENOENT/],
    [[join(folder, 'broken.hcl'), 'a', 'read'], /1:28: invalid capability/],
    [[file, 'a//b', 'read'], /empty segment/],
    [[file, 'a/../b', 'read'], /\. or \.\. segment/],
    [[file, 'a/', 'read'], /only a path to list/],
    [[file, '', 'read'], /the path is empty/],
    [[file, 'a', 'fly'], /unknown capability fly/],
    [[file, 'a', 'read', 'x'], /not of the form name=value/],
    [[file, 'a'], /missing required argument/],
  ] as const)
    it(`exits with 1 for ${argv.slice(1).join(' ')}: ${says.source}`, async () => {
      const [code, output] = await run(...argv);
      expect(code).to.equal(1);
      if (argv.length > 2) expect(output).to.match(says);
    });
});
