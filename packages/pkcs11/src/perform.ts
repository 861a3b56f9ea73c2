import { randomBytes } from 'node:crypto';
import type { Template } from 'pkcs11js';
import type { TokenCall, TokenResult } from './call.ts';
import { type Binding, type Constants, returnValue, safeReason } from './cryptoki.ts';
import { Pkcs11Failure } from './failure.ts';
import type { PublicAttributes } from './public-key.ts';
import { digestInfo } from './rsa-encoding.ts';
import type { Session, Sessions } from './sessions.ts';
import { curves, type GcmInput, type NewTokenKey, type SigningInput, type TokenKey } from './token-key.ts';

/** Longest signature: RSA with 16,384 bits. */
const signatureBytesMax = 2048;
const tagBytes = 16;
const publicExponent = Buffer.from('010001', 'hex');
const keyIdBytes = 16;
const aes256Bytes = 32;

/** Return values after which the session or its handles are invalid. The call changed nothing and may be repeated. */
const staleSession: ReadonlySet<string> = new Set([
  'CKR_SESSION_CLOSED',
  'CKR_SESSION_HANDLE_INVALID',
  'CKR_USER_NOT_LOGGED_IN',
  'CKR_TOKEN_NOT_PRESENT',
  'CKR_TOKEN_NOT_RECOGNIZED',
  'CKR_SLOT_ID_INVALID',
  'CKR_OBJECT_HANDLE_INVALID',
  'CKR_KEY_HANDLE_INVALID',
  'CKR_DEVICE_REMOVED',
  'CKR_OPERATION_ACTIVE',
]);

/** Return values of a working token that refuses the input. */
const refusals: ReadonlySet<string> = new Set([
  'CKR_DATA_INVALID',
  'CKR_DATA_LEN_RANGE',
  'CKR_KEY_FUNCTION_NOT_PERMITTED',
  'CKR_KEY_SIZE_RANGE',
  'CKR_KEY_TYPE_INCONSISTENT',
  'CKR_MECHANISM_INVALID',
  'CKR_MECHANISM_PARAM_INVALID',
  'CKR_ARGUMENTS_BAD',
  'CKR_TEMPLATE_INCONSISTENT',
  'CKR_ATTRIBUTE_VALUE_INVALID',
  'CKR_CURVE_NOT_SUPPORTED',
  'CKR_FUNCTION_NOT_SUPPORTED',
  'CKR_RANDOM_NO_RNG',
  'CKR_TOKEN_WRITE_PROTECTED',
]);

interface PssHash {
  readonly digestBytes: number;
  readonly hash: keyof Constants;
  readonly mask: keyof Constants;
}

/** PSS parameters by OpenSSL's name of the hash. */
const pssHashes: ReadonlyMap<string, PssHash> = new Map([
  ['sha1', { digestBytes: 20, hash: 'CKM_SHA_1', mask: 'CKG_MGF1_SHA1' }],
  ['sha224', { digestBytes: 28, hash: 'CKM_SHA224', mask: 'CKG_MGF1_SHA224' }],
  ['sha256', { digestBytes: 32, hash: 'CKM_SHA256', mask: 'CKG_MGF1_SHA256' }],
  ['sha384', { digestBytes: 48, hash: 'CKM_SHA384', mask: 'CKG_MGF1_SHA384' }],
  ['sha512', { digestBytes: 64, hash: 'CKM_SHA512', mask: 'CKG_MGF1_SHA512' }],
]);

/**
 * Makes one call. Repeats it with a new session if the session was stale, except a generation, which could leave two keys.
 * @throws Pkcs11Failure
 */
export function perform(binding: Binding, sessions: Sessions, call: TokenCall): TokenResult {
  for (let again = call.operation !== 'generate'; ; again = false) {
    const session = sessions.session(call.key);
    try {
      return performOnce(binding, session, call);
    } catch (error) {
      if (error instanceof Pkcs11Failure) throw error;
      const value = returnValue(error);
      // After any error the next call starts with a new session and new handles.
      sessions.drop(session);
      if (again && value !== undefined && staleSession.has(value)) continue;
      throw value !== undefined && refusals.has(value)
        ? new Pkcs11Failure('not_possible', `the token refuses this: ${value}`)
        : new Pkcs11Failure('token_failed', `the token failed: ${safeReason(error)}`);
    }
  }
}

function performOnce(binding: Binding, session: Session, call: TokenCall): TokenResult {
  switch (call.operation) {
    case 'describe':
      return describe(binding, session, call.key);
    case 'require_aes_256':
      return requireAes256(binding, session, call.key);
    case 'generate':
      return generate(binding, session, call.key, call.as);
    case 'sign':
      return sign(binding, session, call.key, call.input);
    case 'encrypt':
      return encrypt(binding, session, call.key, call.input);
    case 'decrypt':
      return decrypt(binding, session, call.key, call.input);
    case 'random':
      return Buffer.from(binding.cryptoki.C_GenerateRandom(session.handle, Buffer.alloc(call.bytes)));
  }
}

function describe(binding: Binding, session: Session, key: TokenKey): PublicAttributes | undefined {
  const { cryptoki, constants } = binding;
  find(binding, session, key, usedClass(constants, key));
  if (key.mechanism === 'CKM_AES_GCM') return undefined;
  const handle = find(binding, session, key, constants.CKO_PUBLIC_KEY);
  const isRsa = key.mechanism !== 'CKM_ECDSA';
  const [first, second] = cryptoki.C_GetAttributeValue(
    session.handle,
    handle,
    isRsa
      ? [{ type: constants.CKA_MODULUS }, { type: constants.CKA_PUBLIC_EXPONENT }]
      : [{ type: constants.CKA_EC_PARAMS }, { type: constants.CKA_EC_POINT }],
  );
  if (!first || !second) throw new Pkcs11Failure('key_unsuitable', 'the token does not return the public half of the key');
  return isRsa
    ? { kind: 'rsa', modulus: first.value, exponent: second.value }
    : { kind: 'ec', parameters: first.value, point: second.value };
}

/** @throws Pkcs11Failure `key_unsuitable` if the key has another type or length */
function requireAes256(binding: Binding, session: Session, key: TokenKey): undefined {
  const { cryptoki, constants } = binding;
  let handle: Buffer;
  try {
    handle = secretKey(binding, session, key);
  } catch (error) {
    if (!(error instanceof Pkcs11Failure && error.code === 'key_not_found')) throw error;
    if (matches(cryptoki, session, nameOf(constants, key)).length === 0) throw error;
    throw new Pkcs11Failure(
      'key_unsuitable',
      'the key of this name in the token is not an AES key: it must be an AES key of 256 bits',
    );
  }
  const [length] = cryptoki.C_GetAttributeValue(session.handle, handle, [{ type: constants.CKA_VALUE_LEN }]);
  const bytes = length === undefined ? 0 : length.value.readUInt32LE(0);
  if (bytes !== aes256Bytes)
    throw new Pkcs11Failure('key_unsuitable', `the key in the token has ${bytes * 8} bits: it must be an AES key of 256 bits`);
  return undefined;
}

/** Generates a key that cannot leave the token. */
function generate(binding: Binding, session: Session, key: TokenKey, { bits, curve }: NewTokenKey): undefined {
  const { cryptoki, constants: c } = binding;
  const named: Template = [
    { type: c.CKA_ID, value: Buffer.from(key.keyId ?? randomBytes(keyIdBytes)) },
    { type: c.CKA_LABEL, value: key.keyLabel ?? '' },
    { type: c.CKA_TOKEN, value: true },
  ];
  const secret: Template = [
    ...named,
    { type: c.CKA_PRIVATE, value: true },
    { type: c.CKA_SENSITIVE, value: true },
    { type: c.CKA_EXTRACTABLE, value: false },
  ];
  if (key.mechanism === 'CKM_AES_GCM') {
    cryptoki.C_GenerateKey(session.handle, { mechanism: c.CKM_AES_KEY_GEN }, [
      ...secret,
      { type: c.CKA_VALUE_LEN, value: (bits ?? 256) / 8 },
      { type: c.CKA_ENCRYPT, value: true },
      { type: c.CKA_DECRYPT, value: true },
    ]);
    return undefined;
  }
  const isRsa = key.mechanism !== 'CKM_ECDSA';
  cryptoki.C_GenerateKeyPair(
    session.handle,
    { mechanism: isRsa ? c.CKM_RSA_PKCS_KEY_PAIR_GEN : c.CKM_EC_KEY_PAIR_GEN },
    [
      ...named,
      { type: c.CKA_VERIFY, value: true },
      ...(isRsa
        ? [
            { type: c.CKA_MODULUS_BITS, value: bits ?? 2048 },
            { type: c.CKA_PUBLIC_EXPONENT, value: publicExponent },
          ]
        : [{ type: c.CKA_EC_PARAMS, value: Buffer.from(curves[curve ?? 'P256'].oid, 'hex') }]),
    ],
    [...secret, { type: c.CKA_SIGN, value: true }],
  );
  return undefined;
}

function sign(binding: Binding, session: Session, key: TokenKey, input: SigningInput): Buffer {
  const { cryptoki, constants } = binding;
  const handle = find(binding, session, key, constants.CKO_PRIVATE_KEY);
  const { mechanism, data } = signing(constants, key, input);
  cryptoki.C_SignInit(session.handle, mechanism, handle);
  return Buffer.from(cryptoki.C_Sign(session.handle, Buffer.from(data), Buffer.alloc(signatureBytesMax)));
}

function signing(constants: Constants, { mechanism }: TokenKey, { digest, hash, saltBytes = 0 }: SigningInput) {
  switch (mechanism) {
    case 'CKM_RSA_PKCS':
      return { mechanism: { mechanism: constants.CKM_RSA_PKCS }, data: digestInfo({ hash, digest }) };
    case 'CKM_ECDSA':
      return { mechanism: { mechanism: constants.CKM_ECDSA }, data: digest };
    case 'CKM_RSA_PKCS_PSS': {
      const pss = pssHashes.get(hash ?? '');
      if (pss === undefined) throw new Pkcs11Failure('not_possible', 'RSA-PSS in a token supports only SHA-1 and SHA-2');
      if (digest.length !== pss.digestBytes)
        throw new Pkcs11Failure('not_possible', `a digest of ${hash} has ${pss.digestBytes} bytes`);
      const parameter = {
        type: constants.CK_PARAMS_RSA_PSS,
        hashAlg: Number(constants[pss.hash]),
        mgf: Number(constants[pss.mask]),
        saltLen: saltBytes,
      };
      return { mechanism: { mechanism: constants.CKM_RSA_PKCS_PSS, parameter }, data: digest };
    }
    case 'CKM_AES_GCM':
      throw new Pkcs11Failure('not_possible', 'an AES key cannot sign');
  }
}

function encrypt(binding: Binding, session: Session, key: TokenKey, gcm: GcmInput): Buffer {
  const { cryptoki } = binding;
  cryptoki.C_EncryptInit(session.handle, gcmMechanism(binding.constants, key, gcm), secretKey(binding, session, key));
  const output = Buffer.alloc(gcm.input.length + tagBytes);
  const plaintext = Buffer.from(gcm.input);
  try {
    const ciphertext =
      plaintext.length === 0
        ? cryptoki.C_EncryptFinal(session.handle, output) // some libraries refuse an empty buffer
        : cryptoki.C_Encrypt(session.handle, plaintext, output);
    return Buffer.from(ciphertext);
  } finally {
    plaintext.fill(0);
  }
}

function decrypt(binding: Binding, session: Session, key: TokenKey, gcm: GcmInput): Buffer {
  const { cryptoki } = binding;
  if (gcm.input.length < tagBytes) throw notAuthentic();
  cryptoki.C_DecryptInit(session.handle, gcmMechanism(binding.constants, key, gcm), secretKey(binding, session, key));
  const output = Buffer.alloc(gcm.input.length);
  try {
    return Buffer.from(cryptoki.C_Decrypt(session.handle, Buffer.from(gcm.input), output));
  } catch (error) {
    const value = returnValue(error);
    if (value === undefined || !tagFailures.has(value)) throw error;
    throw notAuthentic();
  } finally {
    output.fill(0);
  }
}

/** Return values for an invalid tag. SoftHSM returns a general error. */
const tagFailures: ReadonlySet<string> = new Set([
  'CKR_ENCRYPTED_DATA_INVALID',
  'CKR_ENCRYPTED_DATA_LEN_RANGE',
  'CKR_AEAD_DECRYPT_FAILED',
  'CKR_GENERAL_ERROR',
]);

const notAuthentic = (): Pkcs11Failure => new Pkcs11Failure('not_authentic', 'the token does not authenticate the ciphertext');

function gcmMechanism(constants: Constants, { mechanism }: TokenKey, { iv, associatedData }: GcmInput) {
  if (mechanism !== 'CKM_AES_GCM') throw new Pkcs11Failure('not_possible', 'only an AES key can encrypt');
  const parameter = {
    type: constants.CK_PARAMS_AES_GCM_v240,
    iv: Buffer.from(iv),
    ivBits: iv.length * 8,
    aad: Buffer.from(associatedData),
    tagBits: tagBytes * 8,
  };
  return { mechanism: constants.CKM_AES_GCM, parameter };
}

const secretKey = (binding: Binding, session: Session, key: TokenKey): Buffer =>
  find(binding, session, key, binding.constants.CKO_SECRET_KEY);

const usedClass = (constants: Constants, { mechanism }: TokenKey): number =>
  mechanism === 'CKM_AES_GCM' ? constants.CKO_SECRET_KEY : constants.CKO_PRIVATE_KEY;

/**
 * Finds the only object of a class with the key type of the mechanism.
 * @throws Pkcs11Failure `key_not_found`, `key_unsuitable`, `ambiguous`
 */
function find({ cryptoki, constants }: Binding, session: Session, key: TokenKey, objectClass: number): Buffer {
  const { keyLabel, keyId, mechanism } = key;
  const wanted = JSON.stringify([objectClass, mechanism, keyLabel, keyId && Buffer.from(keyId).toString('hex')]);
  const cached = session.keys.get(wanted);
  if (cached !== undefined) return cached;
  const keyType = {
    CKM_AES_GCM: constants.CKK_AES,
    CKM_ECDSA: constants.CKK_EC,
    CKM_RSA_PKCS: constants.CKK_RSA,
    CKM_RSA_PKCS_PSS: constants.CKK_RSA,
  };
  const [found, ...more] = matches(cryptoki, session, [
    { type: constants.CKA_CLASS, value: objectClass },
    { type: constants.CKA_KEY_TYPE, value: keyType[mechanism] },
    ...nameOf(constants, key),
  ]);
  if (found === undefined) {
    // Do not report `key_not_found`: the caller might then generate a key, and with two keys of one name each call would be
    // ambiguous.
    if (objectClass === constants.CKO_PUBLIC_KEY) {
      throw new Pkcs11Failure('key_unsuitable', 'the public half of the key is not in the token');
    }
    throw new Pkcs11Failure('key_not_found', 'the key is not in the token');
  }
  if (more.length > 0) throw new Pkcs11Failure('ambiguous', 'more than one key of the token matches: give its key_id');
  session.keys.set(wanted, found);
  return found;
}

/** Returns the attributes by which a key is named. */
const nameOf = (constants: Constants, { keyLabel, keyId }: TokenKey): Template => [
  ...(keyLabel === undefined ? [] : [{ type: constants.CKA_LABEL, value: keyLabel }]),
  ...(keyId === undefined ? [] : [{ type: constants.CKA_ID, value: Buffer.from(keyId) }]),
];

/** Returns at most two objects with these attributes. */
function matches(cryptoki: Binding['cryptoki'], session: Session, attributes: Template): readonly Buffer[] {
  cryptoki.C_FindObjectsInit(session.handle, attributes);
  const found = cryptoki.C_FindObjects(session.handle, 2);
  cryptoki.C_FindObjectsFinal(session.handle);
  return found;
}
