import { formatVersioned } from '../formats/ciphertext.ts';
import type { SigningOptions } from '../key-pairs/key-pair.ts';
import { versionFor } from '../keys/key-version.ts';
import { TransitError } from '../values/errors.ts';
import { bytesOf, signingContextOf } from './inputs.ts';
import type { Item, Operation } from './operation.ts';
import { type SignatureSettings, signingOptions } from './signature-settings.ts';
import { signingPair } from './signing-pair.ts';

export interface SignItem extends Item {
  /** Required, but may be empty. */
  readonly input?: string | undefined;
  readonly context?: string | undefined;
}

export interface SignRequest extends SignatureSettings, SignItem {
  /** For all items; 0 selects the latest. */
  readonly keyVersion?: number | undefined;
  readonly items?: readonly SignItem[] | undefined;
}

interface Shared {
  readonly keyVersion: number | undefined;
  readonly options: SigningOptions;
}

export interface SignResult {
  /** `svc:v1:` and base64 or, for JWS, base64url without padding (RFC 7515 §2). */
  readonly signature: string;
  readonly keyVersion: number;
  /** Present on derived keys, whose public half depends on the context. */
  readonly publicKey?: string;
}

export const signOperation: Operation<SignRequest, SignItem, Shared, SignResult> = {
  name: 'sign',
  shared: (request) => ({ keyVersion: request.keyVersion, options: signingOptions(request) }),
  async run(tools, key, { input, context }, { keyVersion, options }) {
    if (!key.type.supportsSigning) {
      throw new TransitError('not_supported', `key type ${key.type.name} does not support signing`);
    }
    const version = versionFor('signing', key, keyVersion);
    const message = bytesOf(input);
    const { pair, publicKey } = await signingPair(tools, key, version, signingContextOf(key, context));
    if (pair.sign === undefined) {
      throw new TransitError('invalid_request', 'requested version for signing does not contain a private part');
    }
    const signature = await pair.sign(message, options);
    tools.tally?.add('signatures', version);
    const encoding = options.marshaling === 'jws' ? 'base64url' : 'base64';
    return {
      signature: formatVersioned(tools.prefix, version, signature, encoding),
      keyVersion: version,
      ...(publicKey !== undefined && { publicKey }),
    };
  },
};
