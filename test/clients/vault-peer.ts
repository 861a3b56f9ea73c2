// A real Vault in its dev mode, from the binary that MIGRATE_PEER_BINARY names.
import { type ChildProcess, spawn } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../cluster/harness/free-port.ts';
import { until } from '../cluster/harness/until.ts';
import { Answer } from '../process/live-server.ts';

export const peerBinary = process.env['MIGRATE_PEER_BINARY'];

export class VaultPeer {
  readonly url: string;
  readonly rootToken = 'root';
  readonly #child: ChildProcess;

  private constructor(url: string, child: ChildProcess) {
    this.url = url;
    this.#child = child;
  }

  /** Starts one with a transit mount. @param folder - an empty one */
  static async start(binary: string, folder: string): Promise<VaultPeer> {
    const address = `127.0.0.1:${await freePort('127.0.0.1')}`;
    const log = join(folder, 'peer.log');
    const file = openSync(log, 'w');
    const args = ['server', '-dev', '-dev-no-store-token', '-dev-root-token-id=root', `-dev-listen-address=${address}`];
    const child = spawn(binary, args, { stdio: ['ignore', file, file], env: { HOME: folder, PATH: process.env['PATH'] } });
    const peer = new VaultPeer(`http://${address}`, child);
    const serves = async () => (await peer.call('GET', 'sys/health').catch(() => undefined))?.status === 200;
    await until('the peer serves', serves, { explain: () => readFileSync(log, 'utf8').slice(-2000) });
    await peer.call('POST', 'sys/mounts/transit', { type: 'transit' });
    return peer;
  }

  async call(method: string, path: string, body?: unknown): Promise<Answer> {
    const response = await fetch(`${this.url}/v1/${path}`, {
      method,
      headers: { 'X-Vault-Token': this.rootToken },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return new Answer(response.status, response.headers, await response.text());
  }

  end(): void {
    this.#child.kill('SIGKILL');
  }
}
