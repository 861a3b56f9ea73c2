// `node scripts/file-encryption.ts --gib 10 --folder /var/tmp`: encrypts a large file with the real command, kills it, continues, decrypts,
// and compares. Needs room for twice the size.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runFileEncryption } from '../test/process/file-run.ts';
import { Workbench } from '../test/process/live-server.ts';
import { parseArgs } from './parse-args.ts';

const { values } = parseArgs({
  options: { gib: { type: 'string', default: '10' }, folder: { type: 'string', default: tmpdir() } },
});
const bytes = Math.round(Number(values.gib) * 2 ** 30);
if (!(bytes > 0)) throw new Error('--gib is a positive number');

const bench = new Workbench();
const folder = mkdtempSync(join(values.folder, 'transitd-files-'));
try {
  const server = await bench.start({ dataDir: bench.folder() });
  await server.call('POST', 'transit/keys/files');
  const env = { HOME: folder, TRANSITD_ADDR: server.url, TRANSITD_TOKEN: server.rootToken };
  const { hashes, peakMiB, seconds, killedAtBytes } = await runFileEncryption(bytes, folder, env);
  const rate = (at: 0 | 1): string => `${Math.round(bytes / 2 ** 20 / seconds[at])} MiB/s, at most ${peakMiB[at]} MiB of memory`;
  console.log(`${values.gib} GiB; killed at ${Math.round((100 * killedAtBytes) / bytes)} %`);
  console.log(`continued encryption: ${rate(0)}`);
  console.log(`decryption: ${rate(1)}`);
  console.log(hashes[0] === hashes[1] ? 'the decrypted file is the original' : 'THE DECRYPTED FILE DIFFERS');
  process.exitCode = hashes[0] === hashes[1] ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
  await bench.clean();
}
