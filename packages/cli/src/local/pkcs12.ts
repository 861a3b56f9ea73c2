import { createPrivateKey, type KeyObject } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { StartError } from '@transitd/process';
import { type DerElement, DerError, derElements } from './der.ts';

const [sequence, integer, octetString, identifier, explicit0] = [0x30, 0x02, 0x04, 0x06, 0xa0];
/** Object identifiers of RFC 2315 and RFC 7292, in hex. */
const oids = {
  data: '2a864886f70d010701',
  keyBag: '2a864886f70d010c0a0101',
  shroudedKeyBag: '2a864886f70d010c0a0102',
} as const;

/** Whether the bytes are a PKCS#12 file (RFC 7292): a sequence that begins with the version 3. */
export function isPkcs12(content: Buffer): boolean {
  try {
    const [pfx, ...more] = derElements(content);
    if (pfx?.tag !== sequence || more.length > 0) return false;
    const [version, safe] = derElements(pfx.content);
    return version?.tag === integer && version.content.equals(Buffer.from([3])) && safe?.tag === sequence;
  } catch {
    return false;
  }
}

/**
 * Reads the private key of a PKCS#12 file. Certificates in it are ignored. OpenSSL verifies the MAC of the file and decrypts the key.
 * @throws StartError, which quotes nothing, for a wrong passphrase, and for a file without exactly one key
 */
export function privateKeyInPkcs12(content: Buffer, passphrase: string): KeyObject {
  requireMac(content, passphrase);
  const keys = keysIn(content);
  const [key] = keys;
  if (key === undefined || keys.length > 1)
    throw new StartError(`the PKCS#12 file has ${keys.length} private keys that can be read; it must have one`);
  try {
    return createPrivateKey({ key, format: 'der', type: 'pkcs8', passphrase });
  } catch {
    throw new StartError('the private key of the PKCS#12 file cannot be decrypted: its cipher is not supported');
  }
}

/** OpenSSL verifies the MAC first. Its later errors do not matter: a missing certificate, or one encrypted with an old cipher. */
function requireMac(pfx: Buffer, passphrase: string): void {
  try {
    createSecureContext({ pfx, passphrase });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'ERR_CRYPTO_UNSUPPORTED_OPERATION' && !/^Unable to load (?:certificate|private key) from PFX/.test(message))
      throw new StartError('the PKCS#12 file does not open with this passphrase, or it is damaged');
  }
}

/** Returns the keys as PKCS#8 in DER, encrypted or not. */
function keysIn(content: Buffer): readonly Buffer[] {
  try {
    const [pfx] = derElements(content);
    const [, safe, mac] = derElements(pfx?.content ?? Buffer.alloc(0));
    // Without a MAC, somebody could have put another key into the file.
    if (safe === undefined || mac === undefined) throw new DerError('no content, or no MAC');
    const infos = derElements(only(dataIn(safe), sequence).content);
    // Other content is encrypted as a whole: certificates.
    const bags = infos.filter(isData).flatMap((info) => derElements(only(dataIn(info), sequence).content));
    return bags.flatMap(keyInBag);
  } catch (error) {
    if (error instanceof DerError)
      throw new StartError(
        'the PKCS#12 file has no MAC under a passphrase, or a form that is not supported: convert it with openssl pkcs12',
      );
    throw error;
  }
}

const isData = (info: DerElement): boolean => derElements(info.content)[0]?.content.toString('hex') === oids.data;

/** Returns the octets of a ContentInfo of type data. */
function dataIn(info: DerElement): Buffer {
  const [type, value] = derElements(info.content);
  if (type?.tag !== identifier || type.content.toString('hex') !== oids.data || value?.tag !== explicit0)
    throw new DerError('another type of content');
  return only(value.content, octetString).content;
}

function keyInBag(bag: DerElement): readonly Buffer[] {
  const [type, value] = derElements(bag.content);
  const isKey = [oids.keyBag, oids.shroudedKeyBag].some((oid) => oid === type?.content.toString('hex'));
  return isKey && value?.tag === explicit0 ? [only(value.content, sequence).whole] : [];
}

function only(bytes: Buffer, tag: number): DerElement {
  const [element, ...more] = derElements(bytes);
  if (element?.tag !== tag || more.length > 0) throw new DerError('another structure');
  return element;
}
