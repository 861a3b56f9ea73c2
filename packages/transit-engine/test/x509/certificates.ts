import { generateKeyPairSync, type KeyObject, type KeyPairKeyObjectResult, sign } from 'node:crypto';
import { derTag, encodeDer, encodeDerInteger, encodeOid } from '../../src/formats/der.ts';
import { pemOf } from '../../src/formats/pem.ts';

const { sequence, bitString, octetString } = derTag;
const ecdsaWithSha256 = encodeDer(sequence, encodeOid('1.2.840.10045.4.3.2'));
const nameOf = (commonName: string): Buffer =>
  encodeDer(sequence, encodeDer(0x31, encodeDer(sequence, encodeOid('2.5.4.3'), encodeDer(0x0c, Buffer.from(commonName)))));
const year = (value: number): Buffer => encodeDer(0x17, Buffer.from(`${value % 100}0101000000Z`));

/** An authority that signs what a test needs. */
export class Authority {
  readonly name: string;
  readonly keys: KeyPairKeyObjectResult;

  constructor(name: string, keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })) {
    this.name = name;
    this.keys = keys;
  }

  /** PEM of a certificate for that key. */
  certify(subject: string, publicKey: KeyObject, { ca = false }: { readonly ca?: boolean } = {}): string {
    const constraints = encodeDer(sequence, ca ? encodeDer(0x01, Buffer.of(0xff)) : new Uint8Array());
    const basicConstraints = encodeDer(
      sequence,
      encodeOid('2.5.29.19'),
      encodeDer(0x01, Buffer.of(0xff)),
      encodeDer(octetString, constraints),
    );
    const unsigned = encodeDer(
      sequence,
      encodeDer(derTag.explicit, encodeDerInteger(Buffer.of(2))),
      encodeDerInteger(Buffer.of(7)),
      ecdsaWithSha256,
      nameOf(this.name),
      encodeDer(sequence, year(2020), year(2049)),
      nameOf(subject),
      publicKey.export({ format: 'der', type: 'spki' }),
      encodeDer(derTag.explicit + 3, encodeDer(sequence, basicConstraints)),
    );
    const signature = encodeDer(bitString, Buffer.of(0), sign('sha256', unsigned, this.keys.privateKey));
    return pemOf({ label: 'CERTIFICATE', der: encodeDer(sequence, unsigned, ecdsaWithSha256, signature) });
  }

  /** Its own certificate. */
  get certificate(): string {
    return this.certify(this.name, this.keys.publicKey, { ca: true });
  }
}
