import { constants, createPrivateKey, createPublicKey, type KeyObject, privateDecrypt, publicEncrypt } from 'node:crypto';
import { derInteger, derTag, encodeDer, encodeDerInteger, encodeOid, parseDer, parseDerSequence } from '../formats/der.ts';
import { TransitError } from '../values/errors.ts';
import {
  encodePkcs8,
  encodeSpki,
  notImported,
  notPkcs8,
  notPublicKey,
  parsePkcs8,
  parseSpki,
  publicDerOf,
  publicPemOf,
} from './key-formats.ts';
import type { KeyPair, KeyPairBytes, KeyPairScheme, RsaPadding } from './key-pair.ts';
import { isPair } from './native-signature.ts';
import { generateRsa } from './rsa-generation.ts';
import { modulusFault, type RsaNumbers, rsaFault } from './rsa-numbers.ts';
import { signRsa, verifyRsa } from './rsa-signature.ts';

const none = encodeDer(0x05);
const rsaEncryption = Buffer.concat([encodeOid('1.2.840.113549.1.1.1'), none]);
/** The algorithm of a key restricted to PSS. Here such a key is treated like other RSA keys. */
const rsassaPss = encodeOid('1.2.840.113549.1.1.10');
/**
 * Public exponents must be odd, from 3 to 2^31 − 1, as in Vault and OpenBao; larger ones make public operations slow. Keys generated here
 * have 65537.
 */
const exponentMax = 2 ** 31;
/** Longer than the PKCS#8 of any key of 4,096 bits. */
const pkcs8BytesMax = 4096;

/** RSA (RFC 8017) of one size, with two primes. Both halves are in DER: PKCS#8 and SubjectPublicKeyInfo with rsaEncryption. */
export function rsa(bits: 2048 | 3072 | 4096): KeyPairScheme {
  const name = `rsa-${bits}`;

  const fromPkcs8 = async (der: Uint8Array): Promise<KeyPairBytes> => {
    const pkcs8 = parsePkcs8(der);
    if (pkcs8 === undefined) throw notPkcs8();
    const [oid] = parseDerSequence(pkcs8.algorithm) ?? [];
    const isRsa = rsaEncryption.equals(pkcs8.algorithm) || (oid && rsassaPss.equals(encodeDer(oid.tag, oid.content)));
    if (isRsa !== true) throw notImported(`invalid key type: expected ${name}`);
    const numbers = checkPrivateParts(pkcs8.privateKey, bits);
    const fault = await rsaFault(bits, numbers);
    if (fault !== undefined) throw notImported(fault);
    const publicKey = spkiOf(numbers.modulus, numbers.exponent);
    const material = encodePkcs8({ algorithm: rsaEncryption, privateKey: pkcs8.privateKey });
    if (await belongTogether(material, publicKey)) return { material, publicKey };
    material.fill(0);
    throw notImported('the parts of the key do not belong together');
  };

  const fromPublicDer = async (der: Uint8Array): Promise<Buffer> => {
    const spki = parseSpki(der);
    if (spki === undefined) throw notPublicKey();
    if (!rsaEncryption.equals(spki.algorithm)) throw notImported(`invalid key type: expected ${name}`);
    const key = parseDer(spki.publicKey);
    const [modulus, exponent, ...more] = (key?.tag === derTag.sequence && parseDerSequence(key.content)) || [];
    if (modulus === undefined || exponent === undefined || more.length > 0) throw notPublicKey();
    const parts = { modulus: derInteger(modulus), exponent: derInteger(exponent) };
    if (parts.modulus === undefined || parts.exponent === undefined) throw notPublicKey();
    checkPublicParts(parts.modulus, parts.exponent, bits);
    const fault = await modulusFault(parts.modulus);
    if (fault !== undefined) throw notImported(fault);
    return spkiOf(parts.modulus, parts.exponent);
  };

  return {
    versionName: name,
    fits: (materialBytes) => materialBytes > bits / 8 && materialBytes <= pkcs8BytesMax,
    generate: () => generateRsa(bits),
    load: (bytes) => load(bits, bytes),
    checkCost: { pair: (bits / 4096) ** 3, publicHalf: (bits / 4096) ** 2 / 10 },
    async check({ material, publicKey }) {
      const given = Buffer.from(publicKey.buffer, publicKey.byteOffset, publicKey.length);
      if (material.length === 0) {
        if (!given.equals(await fromPublicDer(publicKey))) throw notPublicKey();
        return;
      }
      const pair = await fromPkcs8(material);
      const same = Buffer.compare(pair.material, material) === 0 && given.equals(pair.publicKey);
      pair.material.fill(0);
      if (!same) throw notImported('key pair does not match');
    },
    publicText: publicPemOf,
    certified: { privateKey: privateHandle, publicKey: publicHandle },
    exported: {
      form: 'text',
      of: (material) => Buffer.from(privateHandle(material).export({ type: 'pkcs1', format: 'pem' })),
    },
    transfer: {
      fromPkcs8,
      fromPublicPem: (pem) => fromPublicDer(publicDerOf(pem)),
      toPkcs8: (material) => Buffer.from(material),
    },
  };
}

/**
 * Encodes a pair from big-endian numbers, as other services write them. It does not check that they belong together.
 * @param secrets - d, p, q, dP, dQ, qInv (RFC 8017 appendix A.1.2); absent if only the public half is known
 */
export function encodeRsa(numbers: {
  readonly modulus: Uint8Array;
  readonly exponent: Uint8Array;
  readonly secrets?: readonly Uint8Array[];
}): KeyPairBytes {
  const { modulus, exponent, secrets } = numbers;
  const publicKey = spkiOf(modulus, exponent);
  if (secrets === undefined) return { material: new Uint8Array(0), publicKey };
  const parts = [Uint8Array.of(0), modulus, exponent, ...secrets].map(encodeDerInteger);
  const privateKey = encodeDer(derTag.sequence, ...parts);
  const material = encodePkcs8({ algorithm: rsaEncryption, privateKey });
  for (const part of [...parts, privateKey]) part.fill(0);
  return { material, publicKey };
}

function load(bits: number, { material, publicKey: spki }: KeyPairBytes): KeyPair {
  const publicKey = publicHandle(spki);
  const privateKey = material.length === 0 ? undefined : privateHandle(material);
  return {
    ...(privateKey && {
      sign: (input, options) => signRsa(privateKey, bits, input, options),
      decrypt: (ciphertext, padding) => decrypt(privateKey, bits, ciphertext, padding),
    }),
    verify: (input, signature, options) => verifyRsa(publicKey, bits, input, signature, options),
    encrypt: (plaintext, padding) => encrypt(publicKey, bits, plaintext, padding),
  };
}

const oaep = { padding: constants.RSA_PKCS1_OAEP_PADDING };
const pkcs1v15 = { padding: constants.RSA_PKCS1_PADDING };

/** Returns the minimum bytes of padding (RFC 8017 §7.1.1 and §7.2.1). */
const paddingBytes = (padding: RsaPadding): number => (padding.scheme === 'oaep' ? 2 * padding.hash.digestBytes + 2 : 11);

function encrypt(key: KeyObject, bits: number, plaintext: Uint8Array, padding: RsaPadding): Buffer {
  if (plaintext.length > bits / 8 - paddingBytes(padding)) {
    const refusal = 'failed to RSA encrypt the plaintext: crypto/rsa: message too long for RSA key size';
    throw new TransitError('invalid_request', refusal);
  }
  const options = padding.scheme === 'oaep' ? { ...oaep, oaepHash: padding.hash.openssl } : pkcs1v15;
  return publicEncrypt({ key, ...options }, plaintext);
}

/**
 * All OAEP failures get the same error text. Wrong PKCS#1 v1.5 padding is not an error: OpenSSL returns bytes that depend on the
 * key and the ciphertext (implicit rejection), because an error would reveal other callers' plaintexts (Bleichenbacher's attack).
 */
function decrypt(key: KeyObject, bits: number, ciphertext: Uint8Array, padding: RsaPadding): Buffer {
  const isOfSize = ciphertext.length === bits / 8;
  const plaintext = !isOfSize
    ? undefined
    : padding.scheme === 'oaep'
      ? decryptOaep(key, padding.hash.openssl, ciphertext)
      : decryptPkcs1v15(key, ciphertext);
  if (plaintext !== undefined) return plaintext;
  throw new TransitError('invalid_ciphertext', 'failed to RSA decrypt the ciphertext: crypto/rsa: decryption error');
}

/** Decrypts RSA-OAEP without a label; OAEP and its mask use the same hash (RFC 8017 §7.1.2). Returns undefined for every failure. */
export function decryptOaep(key: KeyObject, oaepHash: string, ciphertext: Uint8Array): Buffer | undefined {
  try {
    return privateDecrypt({ key, ...oaep, oaepHash }, ciphertext);
  } catch {
    return undefined;
  }
}

/** Returns undefined only for a number that is not below the modulus; callers can find that out from public values. */
function decryptPkcs1v15(key: KeyObject, ciphertext: Uint8Array): Buffer | undefined {
  try {
    return privateDecrypt({ key, ...pkcs1v15 }, ciphertext);
  } catch {
    return undefined;
  }
}

/**
 * Parses an RSAPrivateKey (RFC 8017 appendix A.1.2) of two primes into views of its numbers. It refuses oversized numbers, which would make
 * the checks slow.
 * @throws TransitError `invalid_request`
 */
function checkPrivateParts(der: Uint8Array, bits: number): RsaNumbers {
  const whole = parseDer(der);
  const elements = (whole?.tag === derTag.sequence && parseDerSequence(whole.content)) || [];
  const [version, modulus, exponent, ...secrets] = elements.map((element) => derInteger(element));
  const [d, p, q, dP, dQ, qInverse, ...more] = secrets;
  if (version?.length !== 0 || modulus === undefined || exponent === undefined || more.length > 0) throw notPkcs8();
  if (d === undefined || p === undefined || q === undefined) throw notPkcs8();
  if (dP === undefined || dQ === undefined || qInverse === undefined) throw notPkcs8();
  checkPublicParts(modulus, exponent, bits);
  const fits = d.length <= bits / 8 && [p, q, dP, dQ, qInverse].every(({ length }) => length <= bits / 16);
  if (!fits) throw notImported('the parts of the key do not belong together');
  return { modulus, exponent, d, p, q, dP, dQ, qInverse };
}

/** @throws TransitError `invalid_request` */
function checkPublicParts(modulus: Uint8Array, exponent: Uint8Array, bits: number): void {
  if (modulus.length !== bits / 8) throw notImported(`invalid key size: expected ${bits / 8} bytes, got ${modulus.length} bytes`);
  if ((modulus[0] ?? 0) < 0x80) throw notImported(`invalid key size: the modulus has fewer than ${bits} bits`);
  const e = exponent.length > 4 ? Number.POSITIVE_INFINITY : Number.parseInt(`0${Buffer.from(exponent).toString('hex')}`, 16);
  if (e < 3 || e >= exponentMax || e % 2 === 0) throw notImported('the public exponent is even or out of range');
  if (((modulus.at(-1) ?? 0) & 1) === 0) throw notImported('the modulus is even');
}

/** Checks on the thread pool, with one signature, that the private and the public key belong together. */
async function belongTogether(material: Uint8Array, publicKey: Uint8Array): Promise<boolean> {
  try {
    return await isPair('sha256', privateHandle(material), publicHandle(publicKey));
  } catch {
    return false;
  }
}

const spkiOf = (modulus: Uint8Array, exponent: Uint8Array): Buffer =>
  encodeSpki(rsaEncryption, encodeDer(derTag.sequence, encodeDerInteger(modulus), encodeDerInteger(exponent)));

const privateHandle = (material: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.from(material.buffer, material.byteOffset, material.length), format: 'der', type: 'pkcs8' });

const publicHandle = (spki: Uint8Array): KeyObject => createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
