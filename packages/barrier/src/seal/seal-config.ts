import { keyBytes } from '../records/box.ts';
import { BarrierError } from '../records/errors.ts';

export type SealType = 'shamir' | 'static';

/** A key from the node's configuration that wraps the root key: 32 bytes, and an id that is not secret. */
export interface StaticKey {
  readonly id: string;
  readonly key: Uint8Array;
}

/**
 * How this node unseals. `previous` opens a root key that is still wrapped by the previous key, until the root key is rewrapped by
 * `current`.
 */
export type SealConfig =
  | { readonly type: 'shamir' }
  | { readonly type: 'static'; readonly current: StaticKey; readonly previous?: StaticKey };

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
export function checkSealConfig(seal: SealConfig): void {
  if (seal.type === 'shamir') return;
  const { current, previous } = seal;
  for (const { id, key } of previous === undefined ? [current] : [current, previous]) {
    if (id === '') throw new BarrierError('invalid_seal_config', 'a static seal key needs an id');
    if (key.length !== keyBytes)
      throw new BarrierError('invalid_seal_config', `the static seal key "${id}" must be ${keyBytes} bytes long`);
  }
  if (previous?.id === current.id)
    throw new BarrierError('invalid_seal_config', 'the previous static seal key needs an id of its own');
}
