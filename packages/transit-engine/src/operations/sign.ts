import { TransitError } from '../errors.ts';
import { formatVersioned } from '../formats/ciphertext.ts';
import type { SigningOptions } from '../key-pairs/key-pair.ts';
import { bytesOf, signingContextOf } from './inputs.ts';
import type { Item, Operation } from './operation.ts';
import { pairOf, versionForSigning } from './pair-version.ts';

export interface SignItem extends Item {
  /** base64; it may be empty, but has to be there. */
  readonly input: string | undefined;
  /** base64; empty when absent. */
  readonly context: string;
  /** Of the request, for all its items alike; as is the next. 0 is the latest. */
  readonly keyVersion: number;
  readonly options: SigningOptions;
}

export interface SignResult {
  /** `svc:v1:…`; what follows is base64 or, for JWS, base64url without padding (RFC 7515 §2). */
  readonly signature: string;
  readonly keyVersion: number;
  /** On derived keys, whose public half depends on the context. */
  readonly publicKey?: string;
}

export const signing: Pick<Operation<SignItem, SignResult>, 'run'> = {
  run: async (tools, key, { input, context, keyVersion, options }) => {
    if (!key.type.supportsSigning) {
      throw new TransitError('invalid_request', `key type ${key.type.name} does not support signing`);
    }
    const version = versionForSigning(key, keyVersion);
    if (input === undefined) throw new TransitError('invalid_request', 'missing input');
    const message = bytesOf(input);
    const { pair, publicKey } = await pairOf(tools, key, version, signingContextOf(key, context));
    if (pair.sign === undefined) {
      throw new TransitError('invalid_request', 'requested version for signing does not contain a private part');
    }
    const signature = await pair.sign(message, options);
    const encoding = options.marshaling === 'jws' ? 'base64url' : 'base64';
    return {
      signature: formatVersioned(tools.prefix, version, signature, encoding),
      keyVersion: version,
      ...(publicKey !== undefined && { publicKey }),
    };
  },
};
