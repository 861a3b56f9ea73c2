import { blockBytes, cmac } from '../algorithms/cmac.ts';
import { TransitError } from '../errors.ts';
import { formatVersioned } from '../formats/ciphertext.ts';
import type { LoadedKey, LoadedVersion } from '../keys/key-cache.ts';
import { bytesOf } from './inputs.ts';
import { versionForMac } from './mac-version.ts';
import { type Item, type Operation, versionOf } from './operation.ts';

export interface CmacItem extends Item {
  /** base64; it may be empty, but has to be there. */
  readonly input: string | undefined;
  /** Bytes of the MAC, 0 for all 16. */
  readonly macLength: number;
  /** Of the request, for all its items alike. 0 is the latest. */
  readonly keyVersion: number;
}

export interface CmacResult {
  /** `svc:v1:…` */
  readonly cmac: string;
  readonly keyVersion: number;
}

export const cmacOperation: Pick<Operation<CmacItem, CmacResult>, 'run'> = {
  run: async (tools, key, { input, macLength, keyVersion }) => {
    checkMakesCmacs(key);
    const version = versionForMac('CMAC', key, keyVersion);
    if (macLength < 0 || macLength > blockBytes) {
      const refusal = `mac_length must not be larger than the cipher block size of ${blockBytes} bytes`;
      throw new TransitError('invalid_request', refusal);
    }
    if (input === undefined) throw new TransitError('invalid_request', 'missing input for CMAC');
    const message = bytesOf(input);
    const mac = await cmacUnder(key.versions.get(version) ?? (await versionOf(tools, key, version)), message);
    const shown = macLength === 0 ? mac : mac.subarray(0, macLength);
    return { cmac: formatVersioned(tools.prefix, version, shown), keyVersion: version };
  },
};

/** @throws TransitError `invalid_request` for any other type of key */
export function checkMakesCmacs({ type }: LoadedKey): void {
  if (type.cmac === undefined) throw new TransitError('invalid_request', `key type ${type.name} does not support CMAC`);
}

export function cmacUnder({ cmacKey }: LoadedVersion, message: Uint8Array): Promise<Buffer> {
  if (cmacKey === undefined) throw new Error('a version was loaded as one that makes no CMACs');
  return cmac(cmacKey, message);
}
