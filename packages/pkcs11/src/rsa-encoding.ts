import { Pkcs11Failure } from './failure.ts';

/** DER prefixes of DigestInfo, before the digest (RFC 8017 §9.2 note 1; SHA-3 likewise, with NIST's identifiers). */
const digestInfos: ReadonlyMap<string, Buffer> = new Map(
  Object.entries({
    sha1: '3021300906052b0e03021a05000414',
    sha224: '302d300d06096086480165030402040500041c',
    sha256: '3031300d060960864801650304020105000420',
    sha384: '3041300d060960864801650304020205000430',
    sha512: '3051300d060960864801650304020305000440',
    'sha3-224': '302d300d06096086480165030402070500041c',
    'sha3-256': '3031300d060960864801650304020805000420',
    'sha3-384': '3041300d060960864801650304020905000430',
    'sha3-512': '3051300d060960864801650304020a05000440',
  }).map(([hash, prefix]) => [hash, Buffer.from(prefix, 'hex')]),
);

/** Returns the input of CKM_RSA_PKCS: a DigestInfo or, without a hash, the bytes unchanged. @throws Pkcs11Failure `not_possible` */
export function digestInfo({ hash, digest }: { readonly hash: string | null; readonly digest: Uint8Array }): Uint8Array {
  if (hash === null) return digest;
  const prefix = digestInfos.get(hash);
  if (prefix === undefined)
    throw new Pkcs11Failure('not_possible', `PKCS#1 v1.5 signatures with the hash ${hash} are not supported`);
  return Buffer.concat([prefix, digest]);
}
