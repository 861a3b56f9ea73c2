import type { OneSeal, SealConfig } from '@transitd/barrier';
import { type Config, sealConfig } from '@transitd/configuration';
import { Pkcs11Tokens } from '@transitd/pkcs11';
import { type Logger, type NodeObserver, readNamedFile } from '@transitd/process';
import { type SealBackend, sealRandomBytesMax } from './backend/seal-backend.ts';
import { cloudSeal } from './cloud-seal.ts';
import { connect, exchangeWith, type ProviderTls } from './http/exchange.ts';
import { MonitoredSeal } from './monitored-seal.ts';
import { Pkcs11Seal } from './pkcs11/pkcs11-seal.ts';
import { secretFrom } from './secret-source.ts';
import { TransitSeal } from './transit/transit-seal.ts';

export interface OpenSealParts {
  readonly log: Logger;
  readonly observer: NodeObserver;
  /** Returns the id of the cluster of this node, once it is known. */
  readonly clusterId: () => string | undefined;
}

/** The seal of a node. */
export interface OpenedSeal {
  readonly seal: SealConfig;
  /** The providers of the seals. The caller must call their `tick` every second. */
  readonly providers: readonly MonitoredSeal[];
  /** Random bytes of the provider of `seal`; absent if it gives none. */
  readonly random?: SealRandom;
}

export interface SealRandom {
  readonly bytesMax: number;
  /** Returns random bytes, which the caller wipes. @throws ProviderError */
  draw(bytes: number): Promise<Buffer>;
}

type TransitConfig = Extract<Config['seal'], { type: 'transit' }>;
type Pkcs11Config = Extract<Config['seal'], { type: 'pkcs11' }>;

/** Opens the configured seals and reads their key files. Calls no provider. @throws StartError */
export function openSeal(
  config: Pick<Config, 'seal' | 'migrate_seal_from' | 'pkcs11_libraries'>,
  parts: OpenSealParts,
): OpenedSeal {
  const seal = openOne(config.seal, config, parts);
  const migrateFrom = config.migrate_seal_from && openOne(config.migrate_seal_from, config, parts);
  const providers = [seal, migrateFrom].flatMap((one) => (one?.provider === undefined ? [] : [one.provider]));
  const random = randomOf(seal);
  return { seal: { ...seal.seal, ...(migrateFrom && { migrateFrom: migrateFrom.seal }) }, providers, ...(random && { random }) };
}

const randomOf = ({ provider }: OpenedOne): SealRandom | undefined =>
  provider?.drawsRandom ? { bytesMax: sealRandomBytesMax, draw: (bytes) => provider.random(bytes) } : undefined;

/** One seal, and its provider if it has one. */
interface OpenedOne {
  readonly seal: OneSeal;
  readonly provider?: MonitoredSeal;
}

function openOne(
  config: Config['seal'],
  { pkcs11_libraries }: Pick<Config, 'pkcs11_libraries'>,
  parts: OpenSealParts,
): OpenedOne {
  if (config.type === 'shamir' || config.type === 'static') return { seal: sealConfig(config) };
  const provider = new MonitoredSeal({
    ...parts,
    ...(config.name !== undefined && { name: config.name }),
    backend: backendOf(config, pkcs11_libraries, parts),
    nowMs: () => performance.now(),
    utcMs: () => Date.now(),
    random: () => Math.random(),
  });
  const { type, name } = config;
  return { seal: { type, provider, ...(name !== undefined && { name }) }, provider };
}

type ProviderConfig = Exclude<Config['seal'], { type: 'shamir' | 'static' }>;

function backendOf(config: ProviderConfig, libraries: Config['pkcs11_libraries'], parts: OpenSealParts): SealBackend {
  switch (config.type) {
    case 'transit':
      return transitSeal(config, parts);
    case 'pkcs11':
      return pkcs11Seal(config, libraries);
    case 'awskms':
    case 'azurekeyvault':
    case 'gcpckms':
      return cloudSeal(config, { env: process.env, connect, nowMs: () => Date.now() });
  }
}

function pkcs11Seal(config: Pkcs11Config, libraries: Config['pkcs11_libraries']): SealBackend {
  const { library, slot, token_label, key_label, key_id, pin_file, pin_env } = config;
  return new Pkcs11Seal({
    tokens: new Pkcs11Tokens({ libraries: libraries.filter(({ name }) => name === library) }),
    pin: secretFrom({ file: pin_file, env: pin_env }, 'pin'),
    key: {
      library,
      ...(slot !== undefined && { slot }),
      ...(token_label !== undefined && { tokenLabel: token_label }),
      ...(key_label !== undefined && { keyLabel: key_label }),
      ...(key_id !== undefined && { keyId: Buffer.from(key_id, 'hex') }),
    },
  });
}

function transitSeal(config: TransitConfig, { log, clusterId }: OpenSealParts): SealBackend {
  const { address, mount_path, key_name, namespace, token_file, token_env, disable_renewal } = config;
  return new TransitSeal({
    key: { address, mountPath: mount_path, keyName: key_name },
    namespace,
    token: secretFrom({ file: token_file, env: token_env }, 'token'),
    renewToken: !disable_renewal,
    exchange: exchangeWith(address, tlsOf(config)),
    clusterId,
    log,
    nowMs: () => performance.now(),
  });
}

function tlsOf({ tls }: TransitConfig): ProviderTls {
  const [ca, cert, key] = [read(tls.ca_file), read(tls.cert_file), read(tls.key_file)];
  return { ca, cert, key, serverName: tls.server_name, skipVerify: tls.skip_verify };
}

const read = (file: string | undefined): string | undefined =>
  file === undefined ? undefined : readNamedFile('seal', file).toString('utf8');
