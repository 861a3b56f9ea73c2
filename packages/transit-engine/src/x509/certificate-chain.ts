import { type KeyObject, X509Certificate } from 'node:crypto';
import { pemOf, readPem } from '../formats/pem.ts';
import { TransitError } from '../values/errors.ts';

/** Maximum length of a chain: characters of PEM, as given and as stored, and certificates. */
export const [chainCharsMax, chainCertificatesMax] = [64 * 1024, 16];

const label = 'CERTIFICATE';
/** Largest RSA key of an issuer. */
const [modulusBitsMax, exponentMax] = [8192, 2n ** 32n];

/** The key that the leaf certificate must certify. */
export interface CertifiedKey {
  /** The name of the key's type, for error texts. */
  readonly keyType: string;
  readonly publicKey: KeyObject;
}

/**
 * Reads and checks a chain: the first certificate certifies the key, and each one was issued by the next. Blocks other than certificates
 * are skipped. Validity times and revocation are not checked; relying parties check them.
 * @returns the certificates as PEM, each with a final newline
 * @throws TransitError `invalid_request`
 */
export function certificateChain(text: string, key: CertifiedKey): string {
  const chain = certificatesIn(text);
  checkPlaces(chain);
  checkLeaf(chain, key);
  checkSignatures(chain);
  const stored = chain.map(({ raw: der }) => pemOf({ label, der })).join('');
  if (stored.length > chainCharsMax) throw tooLong();
  return stored;
}

/** Whether a text has the format of a stored chain. The certificates are not checked. */
export const isStoredChain = (text: string): boolean =>
  text.length <= chainCharsMax && /^(?:-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----\n)+$/.test(text);

function certificatesIn(text: string): readonly X509Certificate[] {
  if (text.length > chainCharsMax) throw tooLong();
  const blocks = readPem(text);
  if (blocks === undefined) throw refusal('could not decode a PEM block in the certificate chain');
  const certificates = blocks.filter((block) => block.label === label);
  if (certificates.length === 0) {
    throw refusal('provided certificate chain did not contain any valid PEM encoded certificate');
  }
  if (certificates.length > chainCertificatesMax) {
    throw refusal(`the certificate chain has more than ${chainCertificatesMax} certificates`);
  }
  return certificates.map(({ der }, index) => certificateOf(der, index));
}

/** OpenSSL ignores bytes after the certificate; they are refused here. */
function certificateOf(der: Buffer, index: number): X509Certificate {
  const fault = refusal(
    `could not parse a certificate in the certificate chain: number ${index + 1} is not an X.509 certificate`,
  );
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(der);
  } catch {
    throw fault;
  }
  if (!certificate.raw.equals(der)) throw fault;
  return certificate;
}

function checkPlaces([leaf, ...issuers]: readonly X509Certificate[]): void {
  if (leaf?.ca !== false) throw notPersisted('certificate in the first element is not a valid leaf certificate');
  if (issuers.at(-1)?.ca === false) throw notPersisted('certificate in the last element is not a valid CA certificate');
  if (!issuers.every(({ ca }) => ca)) {
    throw notPersisted(
      'could not validate if there is only one leaf certificate: every certificate but the first has to be a CA certificate',
    );
  }
}

function checkLeaf([leaf]: readonly X509Certificate[], { keyType, publicKey }: CertifiedKey): void {
  const certified = leaf && keyOf(leaf);
  if (certified?.asymmetricKeyType !== publicKey.asymmetricKeyType) {
    const algorithm = certified?.asymmetricKeyType ?? 'unknown';
    throw notPersisted(
      `provided leaf certificate public key algorithm '${algorithm}' does not match the transit key type '${keyType}'`,
    );
  }
  if (!certified?.equals(publicKey)) throw notPersisted('leaf certificate public key does not match the selected key version');
}

function checkSignatures(chain: readonly X509Certificate[]): void {
  for (const [index, issuer] of chain.slice(1).entries()) {
    const issuerKey = keyOf(issuer);
    const certificate = chain[index];
    if (issuerKey !== undefined && !isOfUsualSize(issuerKey)) {
      throw notPersisted(
        `certificate ${index + 2} has a key that is not supported: RSA of at most ${modulusBitsMax} bits, or a named curve`,
      );
    }
    if (issuerKey === undefined || !certificate?.checkIssued(issuer) || !certificate.verify(issuerKey)) {
      throw notPersisted(`certificate ${index + 1} was not issued by the certificate that follows it`);
    }
  }
}

/** Whether a signature under the key can be verified in a few milliseconds. Other keys are as large as their certificate allows. */
function isOfUsualSize({ asymmetricKeyType: type, asymmetricKeyDetails = {} }: KeyObject): boolean {
  const { modulusLength = 0, publicExponent = 0n, namedCurve } = asymmetricKeyDetails;
  if (type === 'rsa' || type === 'rsa-pss') return modulusLength <= modulusBitsMax && publicExponent < exponentMax;
  return type === 'ec' ? namedCurve !== undefined : type !== 'dsa' && type !== 'dh';
}

/** Returns undefined for a key type that OpenSSL does not support. */
function keyOf(certificate: X509Certificate): KeyObject | undefined {
  try {
    return certificate.publicKey;
  } catch {
    return undefined;
  }
}

const tooLong = (): TransitError => refusal(`the certificate chain is longer than ${chainCharsMax} characters`);
const notPersisted = (reason: string): TransitError => refusal(`failed to persist certificate chain: ${reason}`);
const refusal = (message: string): TransitError => new TransitError('invalid_request', message);
