import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { derTag, encodeDer, encodeOid, parseDer } from '../formats/der.ts';
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
} from './key-formats.ts';
import type { KeyPair, KeyPairBytes, KeyPairScheme, SigningOptions } from './key-pair.ts';
import { type NativeOptions, signNatively, verifyNatively } from './native-signature.ts';
import { bufferOutsideHeap, QuickEd25519 } from './quick-ed25519.ts';
import { type Sodium, sodium } from './sodium.ts';

const halfBytes = 32;
const digestBytes = 64;
const contextBytesMax = 255;
const algorithm = encodeOid('1.3.101.112');
/** Bytes of a SubjectPublicKeyInfo before the key at its end. */
const spkiPrefixBytes = encodeSpki(algorithm, new Uint8Array(halfBytes)).length - halfBytes;
const generate = promisify(generateKeyPair);

/**
 * Ed25519 (RFC 8032 §5.1). The private half is seed ‖ public key, 64 bytes, which is also the material of derived keys; the public half is
 * raw. libsodium makes Ed25519 signatures where it is present, otherwise node:crypto. node:crypto makes Ed25519ctx signatures, and
 * @noble/curves Ed25519ph, which node:crypto does not support.
 * @param library - returns libsodium, or undefined to do without it
 */
export const ed25519Of = (library: () => Sodium | undefined): KeyPairScheme => ({
  versionName: 'ed25519',
  fits: (materialBytes) => materialBytes === 2 * halfBytes,
  async generate() {
    const { privateKey } = await generate('ed25519', {});
    const der = privateKey.export({ type: 'pkcs8', format: 'der' });
    try {
      return fromSeed(der.subarray(-halfBytes));
    } finally {
      der.fill(0);
    }
  },
  fromSeed,
  load: (bytes) => load(bytes, library()),
  checkCost: { pair: 0.001, publicHalf: 0.001 },
  async check({ material, publicKey }) {
    if (material.length === 0) return checkPoint(publicKey);
    const pair = fromSeed(material.subarray(0, halfBytes));
    const same = pair.material.equals(material) && pair.publicKey.equals(publicKey);
    pair.material.fill(0);
    if (!same) throw notImported('key pair does not match');
  },
  publicText: (publicKey) => Buffer.from(publicKey).toString('base64'),
  certified: { privateKey: (material) => privateHandle(material.subarray(0, halfBytes)), publicKey: publicHandle },
  exported: { form: 'base64', of: (material) => Buffer.from(material) },
  transfer: {
    async fromPkcs8(der) {
      const pkcs8 = parsePkcs8(der);
      if (pkcs8 === undefined) throw notPkcs8();
      if (!algorithm.equals(pkcs8.algorithm)) throw notImported('invalid key type: expected ed25519');
      const seed = parseDer(pkcs8.privateKey);
      if (seed?.tag !== derTag.octetString || seed.content.length !== halfBytes) throw notPkcs8();
      return fromSeed(seed.content);
    },
    async fromPublicPem(pem) {
      const spki = parseSpki(publicDerOf(pem));
      if (spki === undefined) throw notPublicKey();
      if (!algorithm.equals(spki.algorithm)) throw notImported('invalid key type: expected ed25519');
      await checkPoint(spki.publicKey);
      return spki.publicKey;
    },
    toPkcs8: (material) => pkcs8Of(material.subarray(0, halfBytes)),
  },
});

export const ed25519 = ed25519Of(sodium);

function fromSeed(seed: Uint8Array): KeyPairBytes & { readonly material: Buffer; readonly publicKey: Buffer } {
  const publicKey = rawPublic(createPublicKey(privateHandle(seed)));
  const material = bufferOutsideHeap(2 * halfBytes);
  material.set(seed);
  material.set(publicKey, halfBytes);
  return { material, publicKey };
}

function load({ material, publicKey: raw }: KeyPairBytes, library: Sodium | undefined): KeyPair {
  const publicKey = publicHandle(raw);
  const privateKey = material.length === 0 ? undefined : privateHandle(material.subarray(0, halfBytes));
  const quick = library && new QuickEd25519(library, { material, publicKey: raw });
  return {
    ...(privateKey && {
      sign: async (input, options) => {
        if (variantOf(input, options) === 'ph') return signPh(privateKey, input, options);
        return quick?.sign(input, options) ?? signNatively(privateKey, input, nativeOptions(options));
      },
    }),
    verify: async (input, signature, options) => {
      if (signature.length !== 2 * halfBytes) return variantOf(input, options) === 'never';
      const context = options.signatureContext;
      if (variantOf(input, options) === 'ph') {
        const { ed25519ph } = await import('./ed25519ph.ts');
        return ed25519ph.verify(signature, input, raw, { context, zip215: false });
      }
      // node:crypto has the last word about a signature that libsodium refuses, so both builds accept the same signatures.
      return (
        quick?.accepts(input, signature, options) === true || verifyNatively(publicKey, input, signature, nativeOptions(options))
      );
    },
  };
}

async function signPh(privateKey: KeyObject, input: Uint8Array, { signatureContext: context }: SigningOptions): Promise<Buffer> {
  const { ed25519ph } = await import('./ed25519ph.ts');
  const der = privateKey.export({ type: 'pkcs8', format: 'der' });
  try {
    return Buffer.from(ed25519ph.sign(input, der.subarray(-halfBytes), { context }));
  } finally {
    der.fill(0);
  }
}

/** Returns the scheme (RFC 8032 §5.1) that the options select. @throws TransitError `invalid_request` */
function variantOf(input: Uint8Array, { hash, prehashed, signatureContext }: SigningOptions): 'pure or ctx' | 'ph' | 'never' {
  if (signatureContext.length > contextBytesMax) {
    throw new TransitError('invalid_request', `signature_context must not be longer than ${contextBytesMax} bytes`);
  }
  if (prehashed !== (hash === 'sha2-512')) {
    const refusal = 'ed25519 takes prehashed input with hash_algorithm sha2-512 (Ed25519ph), and neither of the two alone';
    throw new TransitError('invalid_request', refusal);
  }
  if (!prehashed) return 'pure or ctx';
  if (input.length === digestBytes) return 'ph';
  throw new TransitError('invalid_request', `prehashed input for sha2-512 must be ${digestBytes} bytes`);
}

/** A context selects Ed25519ctx. node:crypto treats an empty context as absent. */
const nativeOptions = ({ signatureContext: context }: SigningOptions): NativeOptions =>
  context.length > 0 ? { hash: null, context } : { hash: null };

function privateHandle(seed: Uint8Array): KeyObject {
  const der = pkcs8Of(seed);
  try {
    return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  } finally {
    der.fill(0);
  }
}

function publicHandle(raw: Uint8Array): KeyObject {
  return createPublicKey({ key: encodeSpki(algorithm, raw), format: 'der', type: 'spki' });
}

function pkcs8Of(seed: Uint8Array): Buffer {
  const privateKey = encodeDer(derTag.octetString, seed);
  const der = encodePkcs8({ algorithm, privateKey });
  privateKey.fill(0);
  return der;
}

const rawPublic = (publicKey: KeyObject): Buffer =>
  Buffer.from(publicKey.export({ type: 'spki', format: 'der' }).subarray(spkiPrefixBytes));

/**
 * Checks the point, because node:crypto accepts any 32 bytes. If the public key is a point of small order, anyone can forge signatures.
 * @throws TransitError `invalid_request`
 */
async function checkPoint(publicKey: Uint8Array): Promise<void> {
  const { Point } = (await import('@noble/curves/ed25519.js')).ed25519;
  let point: ReturnType<typeof Point.fromBytes>;
  try {
    point = Point.fromBytes(publicKey);
  } catch {
    throw notPublicKey();
  }
  if (point.isSmallOrder()) throw notPublicKey();
}
