import type { KeyObject } from 'node:crypto';
import type { Hash } from '../algorithms/hash-algorithm.ts';

/** The bytes of one version of an asymmetric key, as stored in its record. */
export interface KeyPairBytes {
  /** The private half in the format of its scheme; empty if only the public half is known. */
  readonly material: Uint8Array;
  /** The public half: SubjectPublicKeyInfo in DER, or the raw format of its scheme. */
  readonly publicKey: Uint8Array;
}

/** How to make or verify a signature. A scheme refuses options that it does not support, and ignores those of other schemes. */
export interface SigningOptions {
  /** `sha1`, `sha2-256` … or `none`. */
  readonly hash: string;
  /** The input is a digest. */
  readonly prehashed: boolean;
  /** Empty when absent. */
  readonly signatureContext: Uint8Array;
  /** RSA only. */
  readonly signatureAlgorithm: string;
  /** RSA-PSS only: bytes, or `auto` or `hash`. */
  readonly saltLength: number | 'auto' | 'hash';
  /** Encoding of an ECDSA signature: DER, or r ‖ s. */
  readonly marshaling: 'asn1' | 'jws';
}

/** How RSA pads a plaintext (RFC 8017 §7). OAEP and its mask use the same hash, and no label. */
export type RsaPadding = { readonly scheme: 'oaep'; readonly hash: Hash } | { readonly scheme: 'pkcs1v15' };

/** A decoded key pair: native handles, which need no further parsing. */
export interface KeyPair {
  /** Absent if only the public half is known. @throws TransitError `invalid_request` */
  readonly sign?: (input: Uint8Array, options: SigningOptions) => Promise<Buffer>;
  /** Whether the signature is valid for this key and input. @throws TransitError for invalid options or a malformed signature */
  readonly verify: (input: Uint8Array, signature: Uint8Array, options: SigningOptions) => Promise<boolean>;
  /** Absent on schemes that do not encrypt. @throws TransitError `invalid_request` */
  readonly encrypt?: (plaintext: Uint8Array, padding: RsaPadding) => Buffer;
  /** Absent if only the public half is known. @throws TransitError `invalid_ciphertext` */
  readonly decrypt?: (ciphertext: Uint8Array, padding: RsaPadding) => Buffer;
}

/** Cost of checking a private half with its public half, and a public half alone. */
export interface CheckCost {
  readonly pair: number;
  readonly publicHalf: number;
}

/** One kind of key pair: generation, import and export, decoding. */
export interface KeyPairScheme {
  /** The name of a version in the API: `P-256`, `ed25519`, `rsa-2048` … */
  readonly versionName: string;
  /** Whether private material may have this many bytes. */
  fits(materialBytes: number): boolean;
  /** Generates a pair without blocking the event loop for long. The caller wipes it. */
  generate(): Promise<KeyPairBytes>;
  /** Computes the pair from a seed of 32 derived bytes; absent on schemes without derivation. The caller wipes the pair. */
  readonly fromSeed?: (seed: Uint8Array) => KeyPairBytes;
  /** Decodes a pair. @throws Error for invalid bytes */
  load(bytes: KeyPairBytes): KeyPair;
  /** Checks that two halves from outside belong to one key and are in the stored format. @throws TransitError `invalid_request` */
  check(bytes: KeyPairBytes): Promise<void>;
  /** Time that `check` takes, measured in checks of private 4,096-bit RSA keys. Every check costs, so that no number of them is free. */
  readonly checkCost: CheckCost;
  /** Returns the public half as callers see it; on hybrid keys, the public half of the post-quantum key. */
  publicText(publicKey: Uint8Array): string;
  /** Returns the public half of the elliptic-curve key as callers see it; present on hybrid keys only. */
  secondPublicText?(publicKey: Uint8Array): string;
  /** Formats of exports. */
  readonly exported: KeyPairExport;
  /** Native handles for certificates; absent on schemes that do not support certificates. */
  readonly certified?: CertifiedPair;
  /** Conversions for import and export to other services; absent if the scheme supports neither. */
  readonly transfer?: KeyPairTransfer;
}

/**
 * Conversions from and to the formats of other programs. Errors of parsers never leave these functions, because they could quote
 * the key.
 */
export interface KeyPairTransfer {
  /** Converts a private key in PKCS#8 (RFC 5958). The caller wipes the input and the result. @throws TransitError `invalid_request` */
  fromPkcs8(der: Uint8Array): Promise<KeyPairBytes>;
  /** Converts a SubjectPublicKeyInfo in PEM (RFC 7468 §13). @throws TransitError `invalid_request` */
  fromPublicPem(pem: string): Promise<Uint8Array>;
  /** Returns PKCS#8 in DER, for an import by another service. The caller wipes it. */
  toPkcs8(material: Uint8Array): Buffer;
}

export interface KeyPairExport {
  /** Whether the exported private half is text or bytes to be encoded as base64. */
  readonly form: 'text' | 'base64';
  /** Returns the exported private half. The caller wipes it. */
  of(material: Uint8Array): Buffer;
  /** Returns the exported public half, if it differs from {@link KeyPairScheme.publicText}. */
  publicText?(publicKey: Uint8Array): string;
}

export interface CertifiedPair {
  privateKey(material: Uint8Array): KeyObject;
  publicKey(publicKey: Uint8Array): KeyObject;
}
