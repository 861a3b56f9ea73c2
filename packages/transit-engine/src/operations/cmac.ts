import { blockBytes, cmac, cmacBytesMin } from '../algorithms/cmac.ts';
import { formatVersioned } from '../formats/ciphertext.ts';
import type { LoadedKey, LoadedVersion } from '../keys/key-cache.ts';
import { versionFor } from '../keys/key-version.ts';
import { TransitError } from '../values/errors.ts';
import { bytesOf } from './inputs.ts';
import type { Item, Operation } from './operation.ts';

export interface CmacItem extends Item {
  /** Required, but may be empty. */
  readonly input?: string | undefined;
  /** Bytes of the MAC: 4 to 16, or 0 for all 16. */
  readonly macLength?: number | undefined;
}

interface Shared {
  /** Bytes of the MACs of items that do not set it. */
  readonly macLength?: number | undefined;
  /** Overrides the `macLength` of all items; absent when they may set it. */
  readonly macLengthForAll?: number | undefined;
  /** 0 selects the latest. */
  readonly keyVersion?: number | undefined;
}

export interface CmacRequest extends CmacItem, Shared {
  readonly items?: readonly CmacItem[] | undefined;
}

export interface CmacResult {
  /** `svc:v1:…` */
  readonly cmac: string;
  readonly keyVersion: number;
}

export const cmacOperation: Operation<CmacRequest, CmacItem, Shared, CmacResult> = {
  name: 'cmac',
  shared: (request) => request,
  async run(tools, key, item, { macLength: forOthers = 0, macLengthForAll, keyVersion }) {
    const { input } = item;
    const macLength = macLengthForAll ?? item.macLength ?? forOthers;
    checkMakesCmacs(key);
    const version = versionFor('CMAC', key, keyVersion);
    checkMacLength(macLength);
    const message = bytesOf(input, 'missing input for CMAC');
    const mac = await cmacUnder(key.versions.get(version) ?? (await tools.keys.loadVersion(key, version)), message);
    tools.tally?.add('signatures', version);
    const shown = macLength === 0 ? mac : mac.subarray(0, macLength);
    return { cmac: formatVersioned(tools.prefix, version, shown), keyVersion: version };
  },
};

/** @throws TransitError `invalid_request` for a length that no CMAC has; 0 stands for all bytes */
export function checkMacLength(bytes: number): void {
  if (bytes < 0 || bytes > blockBytes) {
    const refusal = `mac_length must not be larger than the cipher block size of ${blockBytes} bytes`;
    throw new TransitError('invalid_request', refusal);
  }
  if (bytes > 0 && bytes < cmacBytesMin) {
    const refusal = `mac_length must be 0 or at least ${cmacBytesMin} bytes, because a shorter CMAC never verifies`;
    throw new TransitError('invalid_request', refusal);
  }
}

/** @throws TransitError `not_supported` for key types that make no CMACs */
export function checkMakesCmacs({ type }: LoadedKey): void {
  if (type.cmac === undefined) throw new TransitError('not_supported', `key type ${type.name} does not support CMAC`);
}

export function cmacUnder({ cmacKey }: LoadedVersion, message: Uint8Array): Promise<Buffer> {
  if (cmacKey === undefined) throw new Error('the loaded version has no CMAC key');
  return cmac(cmacKey, message);
}
