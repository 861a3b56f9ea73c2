// Creates a key, reads its material through the barrier, and looks for it in every file of the data directory.

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseConfig } from '@transitd/configuration';
import { expect } from 'chai';
import { pino } from 'pino';
import { Node } from '../src/node.ts';

describe('key material at rest', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-node-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const open = async (): Promise<Node> => {
    const config = parseConfig({
      node_id: 'n1',
      data_dir: join(folder, 'data'),
      listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
      seal: { type: 'static', key_id: 'test', key_file: join(folder, 'seal.key') },
    });
    return Node.open({
      config,
      log: pino({ level: 'silent' }),
      onFatal: (error) => {
        throw error;
      },
    });
  };

  it('is in no file, neither raw nor as hex nor as base64 in any alignment, after writes, a flush, a stop and a start', async () => {
    writeFileSync(join(folder, 'seal.key'), Buffer.alloc(32, 7), { mode: 0o600 });
    const node = await open();
    await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 });
    const engine = node.services?.mounts.engines.get('transit');
    const mount = node.services?.mounts.list[0];
    if (engine === undefined || mount === undefined) throw new Error('the node does not serve');
    await engine.createKey('planted', { exportable: true });
    await engine.rotateKey('planted');
    const store = node.member?.barrier.store;
    const versions = (await store?.range({ prefix: `transit/${mount.id}/ver/` }))?.records ?? [];
    expect(versions).to.have.length(2);
    await node.stop();
    await (await open()).stop();

    // Windows of 16 bytes, one at every eighth byte: in any layout a secret of 32 bytes contains some of them completely.
    const windows = versions.flatMap(({ value }) => {
      const bytes = Buffer.from(value);
      return Array.from({ length: Math.floor((bytes.length - 8) / 8) }, (_, at) => bytes.subarray(8 * at, 8 * at + 16));
    });
    const data = join(folder, 'data');
    const files = readdirSync(data, { recursive: true, encoding: 'utf8' })
      .map((name) => join(data, name))
      .filter((file) => statSync(file).isFile());
    expect(files.length).to.be.greaterThan(3);
    const found = files.filter((file) => {
      const content = readFileSync(file);
      const text = content.toString('latin1');
      const lower = text.toLowerCase();
      return windows.some((window) => {
        if (content.includes(window) || lower.includes(window.toString('hex'))) return true;
        return [0, 1, 2].some((alignment) => {
          const encoded = Buffer.concat([Buffer.alloc(alignment), window])
            .toString('base64')
            .replace(/=+$/, '');
          return text.includes(encoded.slice(alignment === 0 ? 0 : alignment + 1, -2));
        });
      });
    });
    expect(found).to.deep.equal([]);
  });
});
