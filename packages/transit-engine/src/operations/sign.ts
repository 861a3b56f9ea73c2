import { formatVersioned } from '../formats/ciphertext.ts';
import type { SigningOptions } from '../key-pairs/key-pair.ts';
import { TransitError } from '../values/errors.ts';
import { bytesOf, signingContextOf } from './inputs.ts';
import { versionFor } from './key-version.ts';
import { batchOf, type Item, isBatch, type Operation } from './operation.ts';
import { type SignatureSettings, signingOptions } from './signature-settings.ts';
import { signingPair } from './signing-pair.ts';

/** One input, or `batchInput`: JSON of any form. Null counts as absent. */
export interface SignRequest extends SignatureSettings {
  /** base64. */
  readonly input?: string | undefined;
  readonly context?: string | undefined;
  /** 0 selects the latest. */
  readonly keyVersion?: number | undefined;
  readonly batchInput?: unknown;
}

export interface SignItem extends Item {
  /** base64; required, but may be empty. */
  readonly input: string | undefined;
  /** base64; empty when absent. */
  readonly context: string;
  /** The same for all items of a request; 0 selects the latest. */
  readonly keyVersion: number;
  /** The same for all items of a request. */
  readonly options: SigningOptions;
}

export interface SignResult {
  /** `svc:v1:` and base64 or, for JWS, base64url without padding (RFC 7515 §2). */
  readonly signature: string;
  readonly keyVersion: number;
  /** Present on derived keys, whose public half depends on the context. */
  readonly publicKey?: string;
}

export const signOperation: Operation<SignRequest, SignItem, SignResult> = {
  name: 'sign',
  workOf(request) {
    const options = signingOptions(request);
    const { input, context = '', keyVersion = 0 } = request;
    if (!isBatch(request)) return { item: { input, context, keyVersion, options, reference: '' } };
    return batchOf(
      (members) => ({
        input: members.optionalText('input'),
        context: members.text('context'),
        keyVersion,
        options,
        reference: members.text('reference'),
      }),
      request,
    );
  },
  async run(tools, key, { input, context, keyVersion, options }) {
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
    const encoding = options.marshaling === 'jws' ? 'base64url' : 'base64';
    return {
      signature: formatVersioned(tools.prefix, version, signature, encoding),
      keyVersion: version,
      ...(publicKey !== undefined && { publicKey }),
    };
  },
};
