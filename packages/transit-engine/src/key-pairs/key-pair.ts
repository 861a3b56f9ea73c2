import type { KeyObject } from 'node:crypto';

/** The bytes of one version of an asymmetric key, as its record holds them. */
export interface KeyPairBytes {
  /** The private half, in the form of its kind; empty when only the public half is known. */
  readonly material: Uint8Array;
  /** The public half: SubjectPublicKeyInfo in DER or, where the kind has one, its raw form. */
  readonly publicKey: Uint8Array;
}

/** How a signature is to be made, or was made. A kind of key refuses what it cannot honour, and leaves aside what has no place in it. */
export interface SigningOptions {
  /** `sha1`, `sha2-256` … or `none`. */
  readonly hash: string;
  /** The input is the digest already. */
  readonly prehashed: boolean;
  /** Empty when there is none. */
  readonly signatureContext: Uint8Array;
  /** RSA only. */
  readonly signatureAlgorithm: string;
  /** RSA-PSS only: bytes, or as `auto` and `hash` say. */
  readonly saltLength: number | 'auto' | 'hash';
  /** What a signature of two integers looks like: DER, or one behind the other. */
  readonly marshaling: 'asn1' | 'jws';
}

/** A key pair ready for use: native handles, nothing to be parsed any more. */
export interface KeyPair {
  /** Absent when only the public half is known. @throws TransitError `invalid_request` */
  readonly sign?: (input: Uint8Array, options: SigningOptions) => Promise<Buffer>;
  /** Whether the signature is one of this key over that input. @throws TransitError for options or a form that no signature has */
  readonly verify: (input: Uint8Array, signature: Uint8Array, options: SigningOptions) => Promise<boolean>;
  /** On kinds that encrypt. @param padding - `oaep` or `pkcs1v15` @throws TransitError `invalid_request` */
  readonly encrypt?: (plaintext: Uint8Array, padding: string) => Buffer;
  /** Absent when only the public half is known. @throws TransitError `invalid_ciphertext` */
  readonly decrypt?: (ciphertext: Uint8Array, padding: string) => Buffer;
}

/** One kind of key pair: how it comes into being, goes in and out, and becomes ready for use. */
export interface KeyPairScheme {
  /** What a version of it is called: `P-256`, `ed25519`, `rsa-2048` … */
  readonly versionName: string;
  /** Whether private material of that many bytes can be one of this kind. */
  fits(materialBytes: number): boolean;
  /** A new pair, whose bytes the caller wipes. It never keeps the event loop busy for long. */
  generate(): Promise<KeyPairBytes>;
  /** The pair that belongs to 32 derived bytes; on kinds that support derivation. The caller wipes it. */
  readonly fromSeed?: (seed: Uint8Array) => KeyPairBytes;
  /** Makes the handles. @throws Error for bytes that are no such pair */
  load(bytes: KeyPairBytes): KeyPair;
  /** Whether two halves from outside are those of one key of this kind, in the form that it keeps. @throws TransitError `invalid_request` if not */
  check(bytes: KeyPairBytes): Promise<void>;
  /** The public half as callers see it; on a pair of two schemes, that of the post-quantum one. */
  publicText(publicKey: Uint8Array): string;
  /** On a pair of two schemes, the other public half as callers see it. */
  secondPublicText?(publicKey: Uint8Array): string;
  /** What exports show. */
  readonly exported: KeyPairExport;
  /** Native handles; on kinds for which there are certificates. */
  readonly certified?: CertifiedPair;
  /** How pairs of this kind come in and go out; absent where they do not. */
  readonly transfer?: KeyPairTransfer;
}

/** The forms of key pairs outside of this program. Errors of the parsers never leave these functions: they could quote what they read. */
export interface KeyPairTransfer {
  /** Of a private key in PKCS#8 (RFC 5958); the caller wipes both. @throws TransitError `invalid_request` */
  fromPkcs8(der: Uint8Array): Promise<KeyPairBytes>;
  /** Of a SubjectPublicKeyInfo in PEM (RFC 7468 §13). @throws TransitError `invalid_request` */
  fromPublicPem(pem: string): Promise<Uint8Array>;
  /** PKCS#8 in DER, for another service's import; the caller wipes it. */
  toPkcs8(material: Uint8Array): Buffer;
}

export interface KeyPairExport {
  /** Whether what is shown of the private half is text already or is shown in base64. */
  readonly form: 'text' | 'base64';
  /** Of the private half; the caller wipes it. */
  of(material: Uint8Array): Buffer;
  /** Of the public half, where that is not {@link KeyPairScheme.publicText}. */
  publicText?(publicKey: Uint8Array): string;
}

export interface CertifiedPair {
  privateKey(material: Uint8Array): KeyObject;
  publicKey(publicKey: Uint8Array): KeyObject;
}
