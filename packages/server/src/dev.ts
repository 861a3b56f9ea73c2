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
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { newToken } from '@transitd/access';
import { addressText, type Config, type ConfigInput, isLoopback, parseConfig } from '@transitd/configuration';
import { requireOwnerOnly, StartError } from '@transitd/process';

export interface DevOptions {
  readonly dataDir: string;
  readonly listen: string;
  readonly devRootTokenId: string;
  readonly devAllowRemote: boolean;
}

/** The settings of a node that initializes itself, besides its configuration. */
export interface DevNode {
  readonly rootToken: string;
  /** Folder with the seal key and the root token; undefined if the data is temporary. */
  readonly secretsFolder: string | undefined;
}

/** Writes a secret atomically and durably. */
function writeSecret(file: string, text: string): void {
  const temporary = `${file}.part`;
  rmSync(temporary, { force: true });
  const handle = openSync(temporary, 'wx', 0o600);
  writeFileSync(handle, text);
  fsyncSync(handle);
  closeSync(handle);
  renameSync(temporary, file);
  const folder = openSync(dirname(file), 'r');
  fsyncSync(folder);
  closeSync(folder);
}

/**
 * Prepares a development node: data in `dataDir/data`, seal key and root token in `dataDir/dev` (0600). Anyone who can read that folder
 * can decrypt all keys. Without `dataDir` everything is in a temporary folder that is deleted when the process exits.
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
      ui: true,
      log: { format: 'pretty', level: 'warn' },
    },
    process.env,
    // Environment variables meant for another node must not separate this node's data from its keys, nor override the command line.
    {
      data_dir: join(folder, 'data'),
      seal: { type: 'static', key_id: 'dev', key_file: join(secrets, sealKeyName) },
      ...(listen !== undefined && { listeners: listeners(listen) }),
    },
  );
  const remote = config.listeners.find(({ address }) => !isLoopback(address.host));
  if (remote !== undefined && !devAllowRemote) {
    throw new StartError(
      `a --dev node must listen on a loopback address, not on ${addressText(remote.address)}; use --dev-allow-remote to allow it`,
    );
  }
  return { config, dev: { rootToken, secretsFolder: dataDir === undefined ? undefined : secrets } };
}

/** Creates a folder that is removed when the process exits, unless it is killed. */
function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'transitd-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const sealKeyName = 'seal.key';
const tokenName = 'root-token';

/** Returns the root token of the folder; creates it and the seal key in a new folder. @throws StartError */
function rootTokenIn(folder: string, secrets: string, devRootTokenId: string | undefined): string {
  try {
    mkdirSync(secrets, { recursive: true, mode: 0o700 });
    for (const path of [secrets, join(secrets, sealKeyName), join(secrets, tokenName)]) requireOwnerOnly(path);
    // Data without its seal key cannot be opened again; a new key would only hide the cause.
    const firstRun = !existsSync(join(folder, 'data'));
    const sealKeyFile = join(secrets, sealKeyName);
    if (!existsSync(sealKeyFile)) {
      if (!firstRun) throw new StartError(`${sealKeyFile} is missing: the data in ${folder} cannot be opened without it`);
      writeSecret(sealKeyFile, `${randomBytes(32).toString('base64')}\n`);
    }
    const tokenFile = join(secrets, tokenName);
    if (!existsSync(tokenFile)) {
      if (!firstRun) throw new StartError(`${tokenFile} is missing: write the root token into it, or use another --data-dir`);
      writeSecret(tokenFile, `${devRootTokenId ?? newToken()}\n`);
    }
    const rootToken = readFileSync(tokenFile, 'utf8').trim();
    if (devRootTokenId === undefined || devRootTokenId === rootToken) return rootToken;
  } catch (error) {
    if (error instanceof StartError || !(error instanceof Error && 'code' in error)) throw error;
    throw new StartError(`--data-dir: ${folder} cannot be used: ${error.code}`);
  }
  throw new StartError(`${folder} was initialized with a root token other than --dev-root-token-id`);
}

/** Prints the address, the root token, the console and two example commands of a --dev node. */
export function printWelcome({
  address,
  rootToken,
  secretsFolder,
  config: { log, ui },
}: DevNode & { readonly address: string; readonly config: Pick<Config, 'log' | 'ui'> }): void {
  if (log.level === 'silent') return;
  const storage =
    secretsFolder === undefined
      ? 'The data is in a temporary directory and is deleted when the process exits.'
      : `The seal key and the root token are in ${secretsFolder}: anyone who can read this directory can decrypt all keys.`;
  const curl = `curl -s -H "X-Service-Token: ${rootToken}"`;
  process.stdout.write(`
transitd is running in dev mode, initialized and unsealed: NOT FOR PRODUCTION.
${storage}

  address     ${address}
  root token  ${rootToken}${ui ? `\n  console     ${address}/ui/` : ''}

Try it:

  ${curl} ${address}/v1/transit/encrypt/my-key -d "{\\"plaintext\\": \\"$(printf 'hello' | base64)\\"}"
  ${curl} ${address}/v1/transit/decrypt/my-key -d '{"ciphertext": "…paste the ciphertext here…"}'

`);
}
