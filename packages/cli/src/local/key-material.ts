import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { StartError } from '@transitd/process';
import { type Encoding, pkcs8Of } from './import-material.ts';
import { isPkcs12, privateKeyInPkcs12 } from './pkcs12.ts';

/** Key material that was read from a file, in the form that an import takes. */
export type Material =
  | { readonly kind: 'private'; readonly type: string; readonly bytes: Buffer }
  | { readonly kind: 'public'; readonly type: string; readonly pem: string };

export interface MaterialOptions {
  /** Key type; determined from a key pair when absent, `aes256-gcm96` for other bytes. */
  readonly type?: string | undefined;
  /** How the bytes are encoded; PEM and PKCS#12 are recognized when absent, key pairs are DER, other types raw. */
  readonly encoding?: Encoding | undefined;
  /** Of an encrypted private key. */
  readonly passphrase?: string | undefined;
}

const isPairType = (type: string): boolean => /^(?:ed25519|ecdsa-|rsa-)/.test(type);

/** Whether a private key is encrypted, so that a passphrase is necessary. */
export const isEncrypted = (content: Buffer, encoding?: Encoding): boolean =>
  encoding === 'pkcs12' ||
  (encoding === undefined && isPkcs12(content)) ||
  /^-----BEGIN ENCRYPTED PRIVATE KEY|^Proc-Type: 4,ENCRYPTED/m.test(content.toString('latin1'));

/**
 * Reads key material: PEM (PKCS#8, also encrypted, PKCS#1, SEC1, a public key), DER of the same, PKCS#12, or the bytes of a symmetric key.
 * @throws StartError, which never quotes the content
 */
export function materialFrom(content: Buffer, { type, encoding, passphrase }: MaterialOptions): Material {
  const isPem = content.subarray(0, 4096).includes('-----BEGIN ');
  const form =
    encoding ?? (isPem ? 'pem' : isPkcs12(content) ? 'pkcs12' : type !== undefined && isPairType(type) ? 'der' : 'raw');
  if (form === 'raw' || form === 'base64') return symmetric(content, form, type);
  if (form === 'pem' && !isPem) throw new StartError('the key material contains no PEM block');
  const key =
    form === 'pem'
      ? pairInPem(content.toString('latin1'), passphrase)
      : form === 'pkcs12'
        ? privateKeyInPkcs12(content, passphrase ?? '')
        : pairInDer(content, passphrase);
  const found = typeOf(key);
  if (type !== undefined && type !== found) throw new StartError(`the key material is ${found}, not ${type}`);
  return key.type === 'public'
    ? { kind: 'public', type: found, pem: key.export({ type: 'spki', format: 'pem' }).toString() }
    : { kind: 'private', type: found, bytes: pkcs8Of(key) };
}

function symmetric(content: Buffer, form: 'raw' | 'base64', type = 'aes256-gcm96'): Material {
  if (isPairType(type)) throw new StartError(`a key of the type ${type} is imported as PEM or DER`);
  if (form === 'raw') return { kind: 'private', type, bytes: Buffer.from(content) };
  const text = content.toString('latin1').replace(/\s+/g, '');
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length === 0 || bytes.toString('base64') !== text) throw new StartError('the key material is not base64');
  return { kind: 'private', type, bytes };
}

function pairInPem(pem: string, passphrase: string | undefined): KeyObject {
  try {
    return /-----BEGIN (?:RSA )?PUBLIC KEY-----/.test(pem)
      ? createPublicKey(pem)
      : createPrivateKey({ key: pem, ...(passphrase !== undefined && { passphrase }) });
  } catch {
    throw unreadable(passphrase);
  }
}

function pairInDer(der: Buffer, passphrase: string | undefined): KeyObject {
  const secret = passphrase === undefined ? {} : { passphrase };
  for (const read of [
    () => createPrivateKey({ key: der, format: 'der', type: 'pkcs8', ...secret }),
    () => createPrivateKey({ key: der, format: 'der', type: 'pkcs1' }),
    () => createPrivateKey({ key: der, format: 'der', type: 'sec1' }),
    () => createPublicKey({ key: der, format: 'der', type: 'spki' }),
  ])
    try {
      return read();
    } catch {
      // The next form is tried; the error of the last one would be misleading.
    }
  throw unreadable(passphrase);
}

/** The reason is not quoted, because it could contain a part of the key. */
const unreadable = (passphrase: string | undefined): StartError =>
  new StartError(
    `the key material cannot be read${passphrase === undefined ? '' : ' with this passphrase'}: it must be a private or public key in PEM or DER`,
  );

const curves: Readonly<Record<string, string>> = { prime256v1: 'ecdsa-p256', secp384r1: 'ecdsa-p384', secp521r1: 'ecdsa-p521' };

function typeOf({ asymmetricKeyType: kind, asymmetricKeyDetails: details }: KeyObject): string {
  const type =
    kind === 'rsa'
      ? `rsa-${details?.modulusLength}`
      : kind === 'ec'
        ? curves[details?.namedCurve ?? '']
        : kind === 'ed25519'
          ? kind
          : undefined;
  if (type === undefined)
    throw new StartError(`key pairs of the kind ${kind} ${details?.namedCurve ?? ''} are not supported`.replace('  ', ' '));
  return type;
}
