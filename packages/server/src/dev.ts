import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { newToken } from '@transitd/access';
import { type Config, isLoopback, parseConfig } from './config.ts';
import { StartError } from './exit.ts';

export interface DevOptions {
  readonly dataDir: string;
  readonly listen: string;
  readonly devRootTokenId: string;
  readonly devAllowRemote: boolean;
}

/** What a node that initialises itself needs beside its configuration. */
export interface DevNode {
  readonly rootToken: string;
  /** Folder with the seal key and the root token; nothing when the node keeps nothing. */
  readonly secretsFolder: string | undefined;
}

/** Written whole or not at all, and on disk before anything depends on it. */
function writeSecret(file: string, text: string): void {
  const part = `${file}.part`;
  rmSync(part, { force: true });
  const handle = openSync(part, 'wx', 0o600);
  writeSync(handle, text);
  fsyncSync(handle);
  closeSync(handle);
  renameSync(part, file);
  const folder = openSync(dirname(file), 'r');
  fsyncSync(folder);
  closeSync(folder);
}

/**
 * A node to try things on: data below `dataDir/data`, seal key and root token in `dataDir/dev` (0600), so whoever reads that
 * folder has every key. Without `dataDir` all of it lies in a temporary folder that goes with the process.
 * @throws StartError
 */
export async function prepareDev(
  { dataDir, listen = '127.0.0.1:8200', devRootTokenId, devAllowRemote = false }: Partial<DevOptions>,
  run: (config: Config, dev: DevNode) => Promise<number>,
): Promise<number> {
  const folder = dataDir === undefined ? mkdtempSync(join(tmpdir(), 'transitd-')) : resolve(dataDir);
  try {
    const secrets = join(folder, 'dev');
    mkdirSync(secrets, { recursive: true, mode: 0o700 });
    const sealKeyFile = join(secrets, 'seal.key');
    const tokenFile = join(secrets, 'root-token');
    // A data folder without its seal key cannot be opened again; a new key beside it would only hide why.
    const firstRun = !existsSync(join(folder, 'data'));
    if (!existsSync(sealKeyFile)) {
      if (!firstRun) throw new StartError(`${sealKeyFile} is missing: without it the data beside it cannot be opened`);
      writeSecret(sealKeyFile, `${randomBytes(32).toString('base64')}\n`);
    }
    if (!existsSync(tokenFile)) {
      if (!firstRun)
        throw new StartError(`${tokenFile} is missing: write the root token into it, or start anew in another folder`);
      writeSecret(tokenFile, `${devRootTokenId ?? newToken()}\n`);
    }
    const rootToken = readFileSync(tokenFile, 'utf8').trim();
    if (devRootTokenId !== undefined && devRootTokenId !== rootToken) {
      throw new StartError(`${folder} was initialised with another root token than --dev-root-token-id`);
    }
    const config = parseConfig(
      {
        node_id:
          hostname()
            .replace(/[^\w.-]/g, '-')
            .slice(0, 64) || 'node',
        data_dir: join(folder, 'data'),
        listeners: [{ address: listen, tls_disable: true }],
        seal: { type: 'static', key_id: 'dev', key_file: sealKeyFile },
        log: { format: 'pretty', level: 'warn' },
      },
      process.env,
    );
    const remote = config.listeners.find(({ address }) => !isLoopback(address.host));
    if (remote !== undefined && !devAllowRemote) {
      throw new StartError(`a --dev node listens on loopback only, not on ${listen}, unless --dev-allow-remote is given`);
    }
    return await run(config, { rootToken, secretsFolder: dataDir === undefined ? undefined : secrets });
  } finally {
    if (dataDir === undefined) rmSync(folder, { recursive: true, force: true });
  }
}
