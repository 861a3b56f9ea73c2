import { realpathSync } from 'node:fs';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { addressText, isLoopback } from './addresses.ts';
import type { Fault } from './faults.ts';
import type { Config } from './schema.ts';

/**
 * Returns the faults of the seals in combination with other keys and with variables that name files. Each key must already be valid by
 * itself.
 */
export function sealFaults(config: Config, environment: NodeJS.ProcessEnv): readonly Fault[] {
  const { seal, migrate_seal_from: before } = config;
  const faults = [
    ...faultsOf(seal, 'seal', config, environment),
    ...(before === undefined ? [] : faultsOf(before, 'migrate_seal_from', config, environment)),
  ];
  if (before?.type !== seal.type) return faults;
  const [name, nameBefore] = [seal, before].map((one) => ('name' in one ? one.name : undefined));
  if (name !== nameBefore) return faults;
  return [...faults, { path: ['migrate_seal_from', 'type'], text: `has the type of seal: ${remedyFor(seal.type)}` }];
}

function remedyFor(type: Config['seal']['type']): string {
  if (type === 'shamir') return 'new shares are made by sys/rotate/root';
  if (type === 'static') return 'set the key before as seal.previous';
  return 'to move between two seals of one type, give the new one another seal.name';
}

function faultsOf(
  seal: Config['seal'],
  section: string,
  { data_dir, api_addr, listeners, pkcs11_libraries }: Config,
  environment: NodeJS.ProcessEnv,
): readonly Fault[] {
  const inside = secretFiles(seal, environment).find((file) => isInside(file, data_dir));
  if (inside !== undefined) {
    const text = `the file ${inside} is inside data_dir, so a copy of it would contain data and key: move the file`;
    return [{ path: [section], text }];
  }
  if (seal.type === 'pkcs11' && !pkcs11_libraries.some(({ name }) => name === seal.library))
    return [{ path: [section, 'library'], text: 'is not the name of an entry of pkcs11_libraries' }];
  if (seal.type === 'awskms' && seal.endpoint !== undefined && !isSafe(seal.endpoint))
    return [{ path: [section, 'endpoint'], text: `must be an https URL, except on loopback: ${readable}` }];
  if (seal.type !== 'transit') return [];
  const { host } = new URL(seal.address);
  const own = [
    ...(api_addr === undefined ? [] : [new URL(api_addr).host]),
    ...listeners.map(({ address }) => addressText(address)),
  ];
  const fault = (text: string): readonly Fault[] => [{ path: [section, 'address'], text }];
  if (own.includes(host)) return fault('is the address of this node: a sealed node cannot unseal itself; name another cluster');
  if (!isSafe(seal.address)) return fault(`must be an https URL, except on loopback: ${readable}`);
  return [];
}

const readable = 'credentials and the key would be readable on the way';

function isSafe(address: string): boolean {
  const { protocol, hostname } = new URL(address);
  return protocol === 'https:' || isLoopback(hostname.replace(/^\[|\]$/g, ''));
}

/** Variables that name files with credentials. */
const fileVariables: Readonly<Partial<Record<Config['seal']['type'], readonly string[]>>> = {
  awskms: ['AWS_SHARED_CREDENTIALS_FILE', 'AWS_WEB_IDENTITY_TOKEN_FILE', 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE'],
  azurekeyvault: ['AZURE_FEDERATED_TOKEN_FILE'],
};

function secretFiles(seal: Config['seal'], environment: NodeJS.ProcessEnv): readonly string[] {
  const named = (fileVariables[seal.type] ?? []).map((name) => environment[name]);
  return [...filesOf(seal), ...named].filter((file) => file !== undefined);
}

function filesOf(seal: Config['seal']): readonly (string | undefined)[] {
  switch (seal.type) {
    case 'shamir':
      return [];
    case 'static':
      return [seal.key_file, seal.previous?.key_file];
    case 'transit':
      return [seal.token_file, seal.tls.key_file];
    case 'pkcs11':
      return [seal.pin_file];
    case 'azurekeyvault':
      return [seal.client_secret_file];
    case 'awskms':
      return [seal.credentials_file, seal.web_identity_token_file];
    case 'gcpckms':
      return [seal.credentials_file];
  }
}

function isInside(file: string, folder: string): boolean {
  const path = relative(realPath(folder), realPath(file));
  return path !== '..' && !path.startsWith(`..${sep}`);
}

/** Resolves symbolic links in the part of the path that exists. */
function realPath(path: string): string {
  const absolute = resolve(path);
  try {
    return realpathSync(absolute);
  } catch {
    const parent = dirname(absolute);
    return parent === absolute ? absolute : join(realPath(parent), basename(absolute));
  }
}
