// kill -9 at any moment loses no acknowledged write.
import { expect } from 'chai';
import { until } from '../../packages/process/test/until.ts';
import { playsAll } from '../runs.ts';
import { safety } from '../safety.ts';
import { base64, type LiveServer, processMs, Workbench } from './live-server.ts';
import { planted } from './secret-watch.ts';

const kills = playsAll ? 20 : 6;
const writers = 8;

describe('kill -9 under load', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  it(`keeps every acknowledged write over ${kills} kills at random moments`, async function () {
    this.timeout(4 * processMs);
    const dataDir = bench.folder();
    /** Key name → newest version whose rotation was acknowledged. */
    const acknowledged = new Map<string, number>();
    const ciphertexts: { key: string; ciphertext: string; plaintext: string }[] = [];
    let serial = 0;

    /** Creates, rotates and encrypts until the server dies; records only acknowledged results. */
    const write = async (server: LiveServer, token: string): Promise<void> => {
      for (;;) {
        serial += 1;
        const key = `k${serial}`;
        const plaintext = base64(planted(`text ${serial}`));
        try {
          if ((await server.call('POST', `transit/keys/${key}`, {}, token)).status !== 200) continue;
          acknowledged.set(key, 1);
          const encrypted = await server.call('POST', `transit/encrypt/${key}`, { plaintext }, token);
          if (encrypted.status === 200) ciphertexts.push({ key, ciphertext: encrypted.string('data.ciphertext'), plaintext });
          if ((await server.call('POST', `transit/keys/${key}/rotate`, {}, token)).status === 200) acknowledged.set(key, 2);
        } catch {
          return; // the connection ended with the server
        }
      }
    };

    for (let kill = 0; kill < kills; kill += 1) {
      const server = await bench.start({ dataDir });
      const token = server.rootToken;
      const before = acknowledged.size;
      const load = Promise.all(Array.from({ length: writers }, () => write(server, token)));
      // The moment depends on the work done, not on a clock: after 1 to 60 more acknowledged keys.
      const target = before + 1 + ((kill * 37) % 60);
      await until(() => acknowledged.size >= target);
      await server.stop('SIGKILL');
      await load;
    }

    const server = await bench.start({ dataDir });
    const lost: string[] = [];
    for (const [key, version] of acknowledged) {
      const read = await server.call('GET', `transit/keys/${key}`);
      if (read.status !== 200 || Number(read.at('data.latest_version')) < version)
        lost.push(`${key} version ${version}: ${read.text}`);
    }
    for (const { key, ciphertext, plaintext } of ciphertexts) {
      const opened = await server.call('POST', `transit/decrypt/${key}`, { ciphertext });
      if (opened.status !== 200 || opened.at('data.plaintext') !== plaintext) lost.push(`${key} ${ciphertext}: ${opened.text}`);
    }
    expect(lost, safety).to.deep.equal([]);
    expect(acknowledged.size).to.be.greaterThan(kills);
  });
});
