import { createHmac, createPrivateKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { StartError } from '@transitd/process';
import forge from 'node-forge';

type Asn1 = forge.asn1.Asn1;
type MacHash = 'sha1' | 'sha256' | 'sha384' | 'sha512';

/** Largest file, in bytes, and most iterations of one key derivation: tools write 1 to 600,000, and a million take seconds here. */
export const [bytesMax, iterationsMax] = [1024 * 1024, 1_000_000];
/** Hashes of a MAC, under the names that node:crypto and node-forge share. */
const macHashes: readonly string[] = ['sha1', 'sha256', 'sha384', 'sha512'] satisfies MacHash[];
const { data, keyBag, pkcs8ShroudedKeyBag, pkcs5PBES2 } = forge.pki.oids;
const { INTEGER, OCTETSTRING, OID, SEQUENCE } = forge.asn1.Type;
const { CONTEXT_SPECIFIC, UNIVERSAL } = forge.asn1.Class;

/** Whether the bytes are a PKCS#12 file (RFC 7292): a sequence that begins with the version 3. */
export function isPkcs12(content: Buffer): boolean {
  try {
    const [version, safe] = childrenOf(parse(content.toString('latin1', 0, bytesMax)));
    return bytesOf(version, INTEGER) === '\x03' && oidOf(safe) === data;
  } catch {
    return false;
  }
}

/**
 * Reads the private key of a PKCS#12 file. Ignores content that is encrypted as a whole: tools put certificates into it, not keys.
 * @throws StartError, which quotes nothing of the file, for a wrong passphrase, a missing MAC, not exactly one key, and other forms
 */
export function privateKeyInPkcs12(content: Buffer, passphrase: string): KeyObject {
  try {
    if (content.length > bytesMax) throw refusal(`is larger than ${bytesMax} bytes`);
    if (!isPkcs12(content)) throw refusal('is damaged');
    const [, safe, macData] = childrenOf(parse(content.toString('latin1')));
    // Without a MAC, somebody could have put another key into the file.
    if (macData === undefined) throw refusal('has no MAC under a passphrase');
    const contents = octetsOf(safe);
    verifyMac(macData, contents, passphrase);
    const bags = childrenOf(parse(contents)).flatMap((info) => (oidOf(info) === data ? childrenOf(parse(octetsOf(info))) : []));
    const keys = bags.filter((bag) => [keyBag, pkcs8ShroudedKeyBag].includes(oidOf(bag)));
    const [key] = keys;
    if (key === undefined || keys.length > 1) throw refusal(`has ${keys.length} private keys that can be read; it must have one`);
    const info = oidOf(key) === keyBag ? contentOf(key) : decrypted(contentOf(key), passphrase);
    return createPrivateKey({ key: Buffer.from(forge.asn1.toDer(info).getBytes(), 'latin1'), format: 'der', type: 'pkcs8' });
  } catch (error) {
    // The text of other errors may quote the content.
    throw error instanceof StartError ? error : refusal('is damaged, or has a form or a cipher that is not supported');
  }
}

const refusal = (reason: string): StartError =>
  new StartError(`the PKCS#12 file ${reason}. To convert it to PEM: openssl pkcs12 -in FILE -nocerts -out key.pem`);

/** MacData is `{ { { hash }, digest }, salt, iterations DEFAULT 1 }`. */
function verifyMac(macData: Asn1, contents: string, passphrase: string): void {
  const [info, salt] = childrenOf(macData);
  const [algorithm, digest] = childrenOf(info);
  const hash = forge.pki.oids[oidOf(algorithm)] ?? '';
  if (!macHashes.includes(hash)) throw refusal('has a MAC that is not supported');
  const md = forge.md[hash as MacHash].create();
  const [iterations = 1] = iterationsIn(macData);
  const key = forge.pkcs12.generateKey(
    passphrase,
    forge.util.createBuffer(bytesOf(salt, OCTETSTRING)),
    3,
    iterations,
    md.digestLength,
    md,
  );
  const mac = createHmac(hash, Buffer.from(key.getBytes(), 'latin1')).update(contents, 'latin1').digest();
  const expected = Buffer.from(bytesOf(digest, OCTETSTRING), 'latin1');
  if (mac.length !== expected.length || !timingSafeEqual(mac, expected))
    throw new StartError('the PKCS#12 file does not open with this passphrase, or it is damaged');
}

/** EncryptedPrivateKeyInfo is `{ { scheme, parameters }, encrypted }`. */
function decrypted(encrypted: Asn1, passphrase: string): Asn1 {
  const [algorithm] = childrenOf(encrypted);
  iterationsIn(algorithm);
  // PBES2 derives keys from the passphrase in UTF-8, the schemes of PKCS #12 from its characters.
  const spelled = oidOf(algorithm) === pkcs5PBES2 ? Buffer.from(passphrase).toString('latin1') : passphrase;
  const key: Asn1 | null = forge.pki.decryptPrivateKeyInfo(encrypted, spelled);
  if (key === null) throw refusal('has a private key that the passphrase of its MAC does not decrypt');
  return key;
}

/** Returns the numbers of iterations in the parameters of a key derivation, where they follow the salt. */
function iterationsIn(parameters: Asn1 | undefined): number[] {
  if (!Array.isArray(parameters?.value)) return [];
  return parameters.value.flatMap((element, index, all) => {
    if (element.type !== INTEGER || all[index - 1]?.type !== OCTETSTRING) return iterationsIn(element);
    const iterations = forge.asn1.derToInteger(bytesOf(element, INTEGER));
    if (iterations < 1 || iterations > iterationsMax)
      throw refusal(`asks for more than ${iterationsMax} iterations, or for none`);
    return [iterations];
  });
}

// node-forge holds bytes in strings with one character for each.
const parse = (der: string): Asn1 => forge.asn1.fromDer(der, true);

function childrenOf(element: Asn1 | undefined): readonly Asn1[] {
  if (element?.type !== SEQUENCE || element.tagClass !== UNIVERSAL || !Array.isArray(element.value)) throw otherStructure();
  return element.value;
}

function bytesOf(element: Asn1 | undefined, type: forge.asn1.Type): string {
  if (element?.type !== type || element.tagClass !== UNIVERSAL || typeof element.value !== 'string') throw otherStructure();
  return element.value;
}

const otherStructure = (): Error => new TypeError('another structure');

/** ContentInfo, bags and AlgorithmIdentifier begin with an object identifier; the first two have their content in `[0]`. */
const oidOf = (element: Asn1 | undefined): string => forge.asn1.derToOid(bytesOf(childrenOf(element)[0], OID));

function contentOf(element: Asn1 | undefined): Asn1 {
  const tagged = childrenOf(element)[1];
  const content = Array.isArray(tagged?.value) ? tagged.value[0] : undefined;
  if (tagged?.tagClass !== CONTEXT_SPECIFIC || Number(tagged.type) !== 0 || content === undefined) throw otherStructure();
  return content;
}

const octetsOf = (info: Asn1 | undefined): string => bytesOf(contentOf(info), OCTETSTRING);
