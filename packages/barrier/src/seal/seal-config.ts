import { keyBytes } from '../records/box.ts';
import { BarrierError } from '../records/errors.ts';
import type { ProviderSealType, SealProvider } from './seal-provider.ts';

export type SealType = 'shamir' | 'static' | ProviderSealType;

/** A key from the node's configuration that wraps the root key: 32 bytes, and an id that is not secret. */
export interface StaticKey {
  readonly id: string;
  readonly key: Uint8Array;
}

/**
 * One seal. `previous` opens a root key that is still wrapped by the previous key, until the root key is rewrapped by
 * `current`. A seal of any type except `shamir` unseals without an operator; its shares are recovery shares.
 */
export type OneSeal =
  | { readonly type: 'shamir' }
  | { readonly type: 'static'; readonly current: StaticKey; readonly previous?: StaticKey }
  | {
      readonly type: ProviderSealType;
      readonly provider: SealProvider;
      /** Tells two seals of one type apart: stored in the record, so it is the same on all nodes. */
      readonly name?: string;
    };

/** Which seal a record has. */
export interface SealId {
  readonly type: SealType;
  /** Only of a seal with a provider whose configuration has a name. */
  readonly name?: string;
}

/** How this node unseals. `migrateFrom`, of another type or name, opens the records until they are sealed by the first. */
export type SealConfig = OneSeal & { readonly migrateFrom?: OneSeal };

/** Whether the key of a seal of this type is with a provider. */
export const hasProvider = (seal: OneSeal): seal is Extract<OneSeal, { readonly provider: SealProvider }> => 'provider' in seal;

/** Returns the types of seal that this node opens. */
export const sealTypesOf = ({ type, migrateFrom }: SealConfig): readonly SealType[] =>
  migrateFrom === undefined ? [type] : [type, migrateFrom.type];

/** Returns the type and the name by which a record identifies this seal. */
export const idOf = (seal: OneSeal): SealId => {
  const name = hasProvider(seal) ? seal.name : undefined;
  return { type: seal.type, ...(name !== undefined && { name }) };
};

export const isSameSeal = (one: SealId, other: SealId): boolean => one.type === other.type && one.name === other.name;

/** Returns the configured seal of a record. @throws BarrierError `seal_mismatch` */
export function sealOf(seal: SealConfig, id: SealId): OneSeal {
  const found = [seal, seal.migrateFrom].find((one) => one !== undefined && isSameSeal(idOf(one), id));
  if (found !== undefined) return found;
  throw new BarrierError(
    'seal_mismatch',
    `the data was sealed with type ${labelOf(id)}, the configuration says ${labelOf(idOf(seal))}: ` +
      `correct ${seal.type === id.type ? 'seal.name' : 'seal.type'}, ` +
      `or set migrate_seal_from to the seal of type ${labelOf(id)} to move from it`,
  );
}

const labelOf = ({ type, name }: SealId): string => (name === undefined ? type : `${type} named ${name}`);

/** The number of shares, and how many of them are needed. */
export interface ShareCounts {
  readonly shares: number;
  readonly threshold: number;
}

/** The parameters of a request to initialize; 0 means "not given", as command-line clients send it. */
export interface InitializeRequest {
  readonly secretShares?: number;
  readonly secretThreshold?: number;
  readonly recoveryShares?: number;
  readonly recoveryThreshold?: number;
}

const sharesMax = 255;

/** Returns the counts that apply to this type of seal. @throws BarrierError `invalid_seal_config` */
export function countsFor(type: SealType, request: InitializeRequest): ShareCounts {
  const secret = { secret_shares: request.secretShares, secret_threshold: request.secretThreshold };
  const recovery = { recovery_shares: request.recoveryShares, recovery_threshold: request.recoveryThreshold };
  const foreign = Object.entries(type === 'shamir' ? recovery : secret).filter(([, value]) => (value ?? 0) !== 0);
  if (foreign.length > 0) {
    const names = foreign.map(([name]) => name).join(',');
    throw new BarrierError('invalid_seal_config', `parameters ${names} not applicable to seal type ${type}`);
  }
  return checkCounts(
    type === 'shamir'
      ? { shares: request.secretShares ?? 0, threshold: request.secretThreshold ?? 0 }
      : { shares: request.recoveryShares ?? 0, threshold: request.recoveryThreshold ?? 0 },
  );
}

/** @throws BarrierError `invalid_seal_config` */
export function checkCounts({ shares, threshold }: ShareCounts): ShareCounts {
  const problem = problemOf({ shares, threshold });
  if (problem !== undefined) throw new BarrierError('invalid_seal_config', `invalid seal configuration: ${problem}`);
  return { shares, threshold };
}

function problemOf({ shares, threshold }: ShareCounts): string | undefined {
  if (!Number.isInteger(shares) || !Number.isInteger(threshold)) return 'shares and threshold must be whole numbers';
  if (shares < 1) return 'shares must be at least one';
  if (threshold < 1) return 'threshold must be at least one';
  if (shares > sharesMax) return 'shares must be less than 256';
  if (threshold > shares) return 'threshold cannot be larger than shares';
  if (shares > 1 && threshold === 1) return 'threshold must be greater than one for multiple shares';
  return undefined;
}

/** @throws BarrierError `invalid_seal_config` */
export function checkSealConfig({ migrateFrom, ...seal }: SealConfig): void {
  if (migrateFrom !== undefined) checkSealConfig(migrateFrom);
  if (seal.type !== 'static') return;
  const { current, previous } = seal;
  for (const { id, key } of previous === undefined ? [current] : [current, previous]) {
    if (id === '') throw new BarrierError('invalid_seal_config', 'a static seal key needs an id');
    if (key.length !== keyBytes)
      throw new BarrierError('invalid_seal_config', `the static seal key "${id}" must be ${keyBytes} bytes long`);
  }
  if (previous?.id === current.id)
    throw new BarrierError('invalid_seal_config', 'the previous static seal key needs an id of its own');
}

/** Called once this node has wrapped the root key under the present version of the seal's key, or has replaced the seal by another. */
export type OnSealWritten = (change: 'rewrapped' | 'migrated') => void;
