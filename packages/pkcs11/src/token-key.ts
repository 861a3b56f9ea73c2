/** The PKCS#11 mechanism of a key, which also determines its use. */
export type Mechanism = 'CKM_RSA_PKCS' | 'CKM_RSA_PKCS_PSS' | 'CKM_ECDSA' | 'CKM_AES_GCM';

export const mechanisms: readonly Mechanism[] = ['CKM_RSA_PKCS', 'CKM_RSA_PKCS_PSS', 'CKM_ECDSA', 'CKM_AES_GCM'];

/** Curves of ECDSA keys: object identifiers in DER, as in tokens, and bytes of a coordinate. */
export const curves = {
  P256: { jwk: 'P-256', oid: '06082a8648ce3d030107', bytes: 32 },
  P384: { jwk: 'P-384', oid: '06052b81040022', bytes: 48 },
  P521: { jwk: 'P-521', oid: '06052b81040023', bytes: 66 },
} as const;
export type Curve = keyof typeof curves;

/** A token and its PIN. */
export interface TokenPlace {
  /** Name of a library in the configuration. */
  readonly library: string;
  /** At least one of `slot` and `tokenLabel`; a token must match both if given. */
  readonly slot?: number;
  readonly tokenLabel?: string;
  readonly pin: string;
}

/** A key in a token. */
export interface TokenKey extends TokenPlace {
  /** At least one of `keyLabel` and `keyId`; a key must match both if given. */
  readonly keyLabel?: string;
  /** CKA_ID. */
  readonly keyId?: Uint8Array;
  readonly mechanism: Mechanism;
}

/** Parameters of a key to generate. */
export interface NewTokenKey {
  /** For RSA and AES. */
  readonly bits?: number;
  /** For ECDSA. */
  readonly curve?: Curve;
}

/** Input of a signature: a digest or, for CKM_RSA_PKCS without a hash, any bytes that fit. */
export interface SigningInput {
  readonly digest: Uint8Array;
  /** OpenSSL's name of the hash; null for none. */
  readonly hash: string | null;
  /** For CKM_RSA_PKCS_PSS. */
  readonly saltBytes?: number;
}

/** Input of AES-GCM besides the key (NIST SP 800-38D §7). Tags have 128 bits. */
export interface GcmInput {
  /** For decryption: ciphertext ‖ tag. */
  readonly input: Uint8Array;
  readonly iv: Uint8Array;
  readonly associatedData: Uint8Array;
}
