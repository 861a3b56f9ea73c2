import { createPublicKey, type KeyObject, sign } from 'node:crypto';
import { promisify } from 'node:util';
import { type DerElement, derTag, encodeDer, encodeOid, parseDer, parseDerSequence } from '../formats/der.ts';
import { pemOf, readPem } from '../formats/pem.ts';
import { TransitError } from '../values/errors.ts';

/** Longest template, in characters. */
export const templateCharsMax = 64 * 1024;

const label = 'CERTIFICATE REQUEST';
/** Older tools write the second label (RFC 7468 §7). */
const labels = new Set([label, 'NEW CERTIFICATE REQUEST']);

/** The parts that a request copies from its template, as DER. */
interface TemplateParts {
  readonly subject: Uint8Array;
  readonly attributes: Uint8Array;
}

/** `[0]`, implicit (RFC 2986 §4.1). */
const attributesTag = derTag.explicit;
const setTag = 0x31;
const emptyParts: TemplateParts = { subject: encodeDer(derTag.sequence), attributes: encodeDer(attributesTag) };
const version0 = encodeDer(derTag.integer, Uint8Array.of(0));

/** How a key type signs requests: OpenSSL's hash, or null, and the AlgorithmIdentifier. */
interface SignatureAlgorithm {
  readonly hash: string | null;
  readonly identifier: Uint8Array;
}

const ecdsaWith = (hash: string, identifier: string): SignatureAlgorithm => ({
  hash,
  identifier: encodeDer(derTag.sequence, encodeOid(identifier)),
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
  identifier: encodeDer(derTag.sequence, encodeOid('1.2.840.113549.1.1.11'), Uint8Array.of(5, 0)),
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
  const { subject, attributes } = template === undefined || template === '' ? emptyParts : templateParts(template);
  const publicKey = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
  const { hash, identifier } = signatureAlgorithm(privateKey, publicKey);
  const unsigned = encodeDer(derTag.sequence, version0, subject, publicKey, attributes);
  const signature = await signOnPool(hash, unsigned, privateKey);
  const bits = encodeDer(derTag.bitString, Uint8Array.of(0), signature);
  return pemOf({ label, der: encodeDer(derTag.sequence, unsigned, identifier, bits) });
}

function signatureAlgorithm(key: KeyObject, spki: Buffer): SignatureAlgorithm {
  if (key.asymmetricKeyType === 'rsa') return rsaWithSha256;
  const ofCurve = byCurve.get(key.asymmetricKeyDetails?.namedCurve ?? '');
  if (ofCurve !== undefined) return ofCurve;
  // Ed25519 and ML-DSA have one identifier for keys and signatures (RFC 8410 §3, RFC 9881 §2).
  const [identifier] = partsOf(parseDer(spki), derTag.sequence);
  if (identifier === undefined) throw new TypeError('this key cannot sign certificate requests');
  return { hash: null, identifier: encodeDer(identifier.tag, identifier.content) };
}

function templateParts(template: string): TemplateParts {
  if (template.length > templateCharsMax) throw refusal(`the CSR template is longer than ${templateCharsMax} characters`);
  const [block] = readPem(template) ?? [];
  if (block === undefined || !labels.has(block.label)) throw refusal('could not decode PEM CSR');
  const parts = isDer(block.der) ? partsInRequest(block.der) : undefined;
  if (parts === undefined) throw refusal('could not parse the CSR: it is not a PKCS #10 certificate request');
  return parts;
}

/** RFC 2986 §4: `{ { version, subject, key, attributes }, algorithm, signature }`. */
function partsInRequest(der: Buffer): TemplateParts | undefined {
  const [unsigned, algorithm, signature, ...rest] = partsOf(parseDer(der), derTag.sequence);
  const [version, subject, key, attributes, ...more] = partsOf(unsigned, derTag.sequence);
  const whole =
    rest.length + more.length === 0 &&
    algorithm?.tag === derTag.sequence &&
    signature?.tag === derTag.bitString &&
    version?.tag === derTag.integer &&
    key?.tag === derTag.sequence &&
    subject?.tag === derTag.sequence &&
    partsOf(subject, derTag.sequence).every(isNamePart) &&
    (attributes === undefined || (attributes.tag === attributesTag && partsOf(attributes, attributesTag).every(isAttribute)));
  if (!whole) return undefined;
  // DER has one encoding for each element, so encoding it again gives the same bytes.
  return {
    subject: encodeDer(subject.tag, subject.content),
    attributes: attributes ? encodeDer(attributes.tag, attributes.content) : emptyParts.attributes,
  };
}

/** A RelativeDistinguishedName: a set of types with their values (RFC 5280 §4.1.2.4). */
const isNamePart = (part: DerElement): boolean => {
  const pairs = partsOf(part, setTag);
  return pairs.length > 0 && pairs.every((pair) => isTyped(pair) && partsOf(pair, derTag.sequence).length === 2);
};

/** An attribute: a type and a set of values (RFC 2986 §4.1). */
const isAttribute = (part: DerElement): boolean => {
  const [, values, ...more] = partsOf(part, derTag.sequence);
  return isTyped(part) && values?.tag === setTag && more.length === 0;
};

const isTyped = (part: DerElement): boolean => partsOf(part, derTag.sequence)[0]?.tag === derTag.objectIdentifier;

const partsOf = (element: DerElement | undefined, tag: number): readonly DerElement[] =>
  (element?.tag === tag ? parseDerSequence(element.content) : undefined) ?? [];

const constructedBit = 0x20;
/** Maximum depth: more levels than any valid request has. */
const depthMax = 16;

/** Whether the bytes that will be signed are DER at all levels, judging by their tags. */
function isDer(bytes: Uint8Array, depth = 0): boolean {
  const elements = depth > depthMax ? undefined : parseDerSequence(bytes);
  return elements?.every(({ tag, content }) => (tag & constructedBit) === 0 || isDer(content, depth + 1)) ?? false;
}

const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
