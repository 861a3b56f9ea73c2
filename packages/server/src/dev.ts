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
import { type Config, type ConfigInput, isLoopback, parseConfig } from '@transitd/configuration';
import { requireOwnerOnly, StartError } from '@transitd/process';

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
export function prepareDev({ dataDir, listen, devRootTokenId, devAllowRemote = false }: Partial<DevOptions>): {
  readonly config: Config;
  readonly dev: DevNode;
} {
  const folder = dataDir === undefined ? temporaryFolder() : resolve(dataDir);
  const secrets = join(folder, 'dev');
  const rootToken = rootTokenIn(folder, secrets, devRootTokenId);
  const listeners = (address: string): ConfigInput['listeners'] => [{ address, tls_disable: true }];
  const config = parseConfig(
    {
      node_id:
        hostname()
          .replace(/[^\w.-]/g, '-')
          .slice(0, 64) || 'node',
      listeners: listeners('127.0.0.1:8200'),
      log: { format: 'pretty', level: 'warn' },
    },
    process.env,
    // What the environment says of another node must not part this one's data from its keys, nor overrule the command line.
    {
      data_dir: join(folder, 'data'),
      seal: { type: 'static', key_id: 'dev', key_file: join(secrets, sealKeyName) },
      ...(listen !== undefined && { listeners: listeners(listen) }),
    },
  );
  const remote = config.listeners.find(({ address }) => !isLoopback(address.host));
  if (remote !== undefined && !devAllowRemote) {
    throw new StartError(
      `a --dev node listens on loopback only, not on ${remote.address.host}:${remote.address.port}, unless --dev-allow-remote is given`,
    );
  }
  return { config, dev: { rootToken, secretsFolder: dataDir === undefined ? undefined : secrets } };
}

/** Removed however the process ends, but for a kill. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const sealKeyName = 'seal.key';
const tokenName = 'root-token';

/** The root token of this folder, made with the seal key when it is a new one. @throws StartError */
function rootTokenIn(folder: string, secrets: string, devRootTokenId: string | undefined): string {
  try {
    mkdirSync(secrets, { recursive: true, mode: 0o700 });
    for (const path of [secrets, join(secrets, sealKeyName), join(secrets, tokenName)]) requireOwnerOnly(path);
    // A data folder without its seal key cannot be opened again; a new key beside it would only hide why.
    const firstRun = !existsSync(join(folder, 'data'));
    const sealKeyFile = join(secrets, sealKeyName);
    if (!existsSync(sealKeyFile)) {
      if (!firstRun) throw new StartError(`${sealKeyFile} is missing: without it the data beside it cannot be opened`);
      writeSecret(sealKeyFile, `${randomBytes(32).toString('base64')}\n`);
    }
    const tokenFile = join(secrets, tokenName);
    if (!existsSync(tokenFile)) {
      if (!firstRun)
        throw new StartError(`${tokenFile} is missing: write the root token into it, or start anew in another folder`);
      writeSecret(tokenFile, `${devRootTokenId ?? newToken()}\n`);
    }
    const rootToken = readFileSync(tokenFile, 'utf8').trim();
    if (devRootTokenId === undefined || devRootTokenId === rootToken) return rootToken;
  } catch (error) {
    if (error instanceof StartError || !(error instanceof Error && 'code' in error)) throw error;
    throw new StartError(`--data-dir: ${folder} cannot be used: ${error.code}`);
  }
  throw new StartError(`${folder} was initialised with another root token than --dev-root-token-id`);
}
