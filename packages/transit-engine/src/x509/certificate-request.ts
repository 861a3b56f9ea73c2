import { createPublicKey, type KeyObject, sign } from 'node:crypto';
import { promisify } from 'node:util';
import { CertificationRequest, CertificationRequestInfo } from '@peculiar/asn1-csr';
import { AsnConvert } from '@peculiar/asn1-schema';
import { AlgorithmIdentifier, SubjectPublicKeyInfo } from '@peculiar/asn1-x509';
import { parseDerSequence } from '../formats/der.ts';
import { pemOf, readPem } from '../formats/pem.ts';
import { TransitError } from '../values/errors.ts';

/** Longest template, in characters. */
export const templateCharsMax = 64 * 1024;

const label = 'CERTIFICATE REQUEST';
/** Older tools write the second label (RFC 7468 §7). */
const labels = new Set([label, 'NEW CERTIFICATE REQUEST']);

/** How a key type signs requests: OpenSSL's hash, or null, and the AlgorithmIdentifier. */
interface SignatureAlgorithm {
  readonly hash: string | null;
  readonly identifier: AlgorithmIdentifier;
}

const ecdsaWith = (hash: string, algorithm: string): SignatureAlgorithm => ({
  hash,
  identifier: new AlgorithmIdentifier({ algorithm }),
});
/** By curve (RFC 5758 §3.2). The hash has the size of the curve. */
const byCurve: ReadonlyMap<string, SignatureAlgorithm> = new Map([
  ['prime256v1', ecdsaWith('sha256', '1.2.840.10045.4.3.2')],
  ['secp384r1', ecdsaWith('sha384', '1.2.840.10045.4.3.3')],
  ['secp521r1', ecdsaWith('sha512', '1.2.840.10045.4.3.4')],
]);
/** sha256WithRSAEncryption, whose parameters are NULL (RFC 8017 appendix A.2.4). */
const rsaWithSha256: SignatureAlgorithm = {
  hash: 'sha256',
  identifier: new AlgorithmIdentifier({ algorithm: '1.2.840.113549.1.1.11', parameters: Uint8Array.of(5, 0).buffer }),
};

const signOnPool = promisify(sign);

/**
 * Makes a certificate signing request (PKCS #10, RFC 2986) for the public half of `privateKey`: RSA, ECDSA, Ed25519, ML-DSA.
 * @param template - PEM; the request takes its subject and attributes, which include extensions. Its signature is not checked. Without a
 *   template the subject is empty
 * @returns PEM with a final newline
 * @throws TransitError `invalid_request`
 */
export async function certificateRequest(privateKey: KeyObject, template?: string): Promise<string> {
  const { subject, attributes } = template === undefined || template === '' ? new CertificationRequestInfo() : infoIn(template);
  const publicKey = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  const subjectPKInfo = AsnConvert.parse(publicKey, SubjectPublicKeyInfo);
  const info = new CertificationRequestInfo({ subject, subjectPKInfo, attributes });
  const { hash, identifier } = signatureAlgorithm(privateKey, subjectPKInfo);
  const signature = await signOnPool(hash, encoded(info), privateKey);
  const request = new CertificationRequest({
    certificationRequestInfo: info,
    signatureAlgorithm: identifier,
    signature: Uint8Array.from(signature).buffer,
  });
  return pemOf({ label, der: encoded(request) });
}

function signatureAlgorithm(key: KeyObject, { algorithm }: SubjectPublicKeyInfo): SignatureAlgorithm {
  if (key.asymmetricKeyType === 'rsa') return rsaWithSha256;
  // Ed25519 and ML-DSA have one identifier for keys and signatures (RFC 8410 §3, RFC 9881 §2).
  return byCurve.get(key.asymmetricKeyDetails?.namedCurve ?? '') ?? { hash: null, identifier: algorithm };
}

function infoIn(template: string): CertificationRequestInfo {
  if (template.length > templateCharsMax) throw refusal(`the CSR template is longer than ${templateCharsMax} characters`);
  const [block] = readPem(template) ?? [];
  if (block === undefined || !labels.has(block.label)) throw refusal('could not decode PEM CSR');
  const request = isDer(block.der) ? requestIn(block.der) : undefined;
  if (request === undefined) throw refusal('could not parse the CSR: it is not a PKCS #10 certificate request');
  return request.certificationRequestInfo;
}

/** Returns undefined for bytes that are no request, and for a request that would not be encoded again as these bytes. */
function requestIn(der: Buffer): CertificationRequest | undefined {
  try {
    const request = AsnConvert.parse(der, CertificationRequest);
    const { certificationRequestInfo: info } = request;
    if (der.equals(encoded(request))) return request;
    // Some tools leave empty attributes out, which RFC 2986 does not allow. The library reads them as empty.
    if (info.attributes.length > 0) return undefined;
    const short = Object.assign(new CertificationRequestInfo(info), { attributes: undefined });
    return der.equals(encoded(new CertificationRequest({ ...request, certificationRequestInfo: short }))) ? request : undefined;
  } catch {
    return undefined;
  }
}

const encoded = (value: CertificationRequest | CertificationRequestInfo): Buffer => Buffer.from(AsnConvert.serialize(value));

const constructedBit = 0x20;
/** Maximum depth: more levels than any valid request has. */
const depthMax = 16;

/** Whether the bytes are DER at all levels, judging by their tags. The library reads any depth, and BER. */
function isDer(bytes: Uint8Array, depth = 0): boolean {
  const elements = depth > depthMax ? undefined : parseDerSequence(bytes);
  return elements?.every(({ tag, content }) => (tag & constructedBit) === 0 || isDer(content, depth + 1)) ?? false;
}

const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
