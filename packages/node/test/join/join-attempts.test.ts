import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseConfig } from '@transitd/configuration';
import { expect } from 'chai';
import { pino } from 'pino';
import { JoinAttempts, type JoinAttemptsParts } from '../../src/join/join-attempts.ts';

describe('JoinAttempts with retry_join', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-join-'));
    writeFileSync(join(folder, 'ca.pem'), 'nobody');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Retries once; returns the log lines. @param isInitialized - the node is initialized while it reads its join target */
  async function retried({ isInitialized }: { readonly isInitialized: boolean }): Promise<readonly string[]> {
    const lines: string[] = [];
    const log = pino({ level: 'silent' });
    const config = parseConfig({
      node_id: 'n1',
      data_dir: folder,
      listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
      cluster_addr: 'n1.example:8201',
      retry_join: ['https://127.0.0.1:1'],
      retry_join_ca_file: join(folder, 'ca.pem'),
      seal: { type: 'shamir' },
    });
    let isMember = false;
    const directory: Partial<JoinAttemptsParts['directory']> = {
      holdsNode: async () => {
        setImmediate(() => {
          isMember = isInitialized;
        });
        return false;
      },
    };
    const joinAttempts = new JoinAttempts({
      config,
      seal: { type: 'shamir' },
      directory: directory as JoinAttemptsParts['directory'],
      log: Object.assign(Object.create(log), { info: (_: object, text: string) => lines.push(text) }),
      apiAddress: () => 'http://127.0.0.1:2',
      isListening: () => true,
      isMember: () => isMember,
      start: async () => undefined,
    });
    await joinAttempts.retry();
    return lines;
  }

  it('asks to join, and logs a failure', async () => {
    expect(await retried({ isInitialized: false })).to.deep.equal([
      'this node has not joined a cluster yet; it retries every second',
    ]);
  });

  it('does not ask when the node has been initialized in the meantime', async () => {
    expect(await retried({ isInitialized: true })).to.deep.equal([]);
  });
});
