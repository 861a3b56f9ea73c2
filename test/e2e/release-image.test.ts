// The image of a release, which contains the archive instead of a checkout.
import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { DevNode } from '../release/dev-node.ts';
import { releaseImage } from './images.ts';

describe('the image of a release', () => {
  const hardened = ['run', '--rm', '--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];
  let image: string;
  const inside = (script: string): string =>
    execFileSync('docker', [...hardened, '--entrypoint', '/opt/transitd/lib/node/bin/node', image, '-e', script], {
      encoding: 'utf8',
    });

  before(() => {
    image = releaseImage();
  });

  it('encrypts on a read-only file system, without capabilities', async () => {
    // The network of this machine: a dev node listens on loopback only.
    const options = ['--network', 'host', '--env', 'TRANSITD_LISTEN_ADDRESS', '--env', 'TRANSITD_TELEMETRY_ADDRESS'];
    const command = ['docker', ...hardened, ...options, image, 'server', '--dev', '--data-dir', '/var/lib/transitd/data'];
    const node = await DevNode.start({ command, cwd: '/', env: process.env });
    try {
      expect(await node.roundTrip()).to.match(/^svc:v1:/);
    } finally {
      await node.stop();
    }
  });

  it('runs as a user that cannot change the program', () => {
    const script = `
      const fs = require('node:fs');
      const owner = ({ uid, mode }) => [uid, (mode & 0o022).toString(8)];
      const program = ['/opt/transitd/bin/transitd', '/opt/transitd/lib/node/bin/node', '/opt/transitd/lib/transitd/transitd.mjs'];
      const cache = fs.readdirSync('/opt/transitd/lib/transitd/node_modules/.cache/transitd', { recursive: true }).length > 300;
      console.log(JSON.stringify({ uid: process.getuid(), owners: program.map((path) => owner(fs.statSync(path))), cache }));`;
    expect(JSON.parse(inside(script))).to.deep.equal({ uid: 65532, owners: Array(3).fill([0, '0']), cache: true });
  });

  it('loads the native part of PKCS#11', () => {
    const script = `
      const { PKCS11 } = require('/opt/transitd/lib/transitd/node_modules/pkcs11js');
      try { new PKCS11().load('/absent.so'); } catch (error) { console.log(error.message); }`;
    expect(inside(script)).to.include('/absent.so');
  });
});
