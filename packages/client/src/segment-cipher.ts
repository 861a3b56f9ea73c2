/** Parameters of an AES-GCM-HKDF streaming key, in bytes. */
export interface SegmentParameters {
  readonly derivedKeyBytes: 16 | 32;
  readonly hash: 'SHA-1' | 'SHA-256' | 'SHA-512';
  /** Size of a ciphertext segment; the first one includes the header. */
  readonly segmentBytes: number;
}

/** Tink's AES256_GCM_HKDF_1MB. */
export const fileParameters: SegmentParameters = { derivedKeyBytes: 32, hash: 'SHA-256', segmentBytes: 1024 * 1024 };

/** Size of the data key of a file or message. */
export const dataKeyBytes = 32;

const [noncePrefixBytes, tagBytes] = [7, 16];
/** The number of a segment has 32 bits. */
export const segmentsMax = 2 ** 32;

/** A segment or a header is not what was encrypted: changed, cut, moved, or of another stream. */
export class DamagedStream extends Error {
  override readonly name = 'DamagedStream';
}

type Bytes = Uint8Array<ArrayBuffer>;
type DerivedKey = Awaited<ReturnType<typeof crypto.subtle.deriveKey>>;
type Algorithm = Exclude<Parameters<typeof crypto.subtle.encrypt>[0], string>;

/**
 * Encrypts and decrypts the segments of one stream with the construction AES-GCM-HKDF of Google Tink (developers.google.com/tink,
 * "AES-GCM-HKDF Streaming AEAD"; security: Hoang, Reyhanitabar, Rogaway, Vizár 2015). Each stream has its own AES key, derived from the
 * key, a random salt and the associated data. The nonce of a segment contains its number and whether it is the last one, so a segment
 * that was changed, left out, moved, added or taken from another stream is not decrypted, and neither is a stream without its end.
 */
export class SegmentCipher {
  /** Length, salt and nonce prefix: the beginning of the stream. */
  readonly header: Bytes;
  readonly #key: DerivedKey;
  readonly #segmentBytes: number;

  private constructor(header: Bytes, key: DerivedKey, segmentBytes: number) {
    this.header = header;
    this.#key = key;
    this.#segmentBytes = segmentBytes;
  }

  static headerBytes({ derivedKeyBytes }: SegmentParameters): number {
    return 1 + derivedKeyBytes + noncePrefixBytes;
  }

  /**
   * @param key - at least `derivedKeyBytes` long
   * @param associatedData - authenticated with every segment
   * @param header - of an existing stream; a random one when absent
   * @throws DamagedStream if the header does not fit the parameters
   */
  static async create(
    key: Uint8Array,
    associatedData: Uint8Array,
    parameters: SegmentParameters = fileParameters,
    header: Uint8Array = newHeader(parameters),
  ): Promise<SegmentCipher> {
    const { derivedKeyBytes, hash, segmentBytes } = parameters;
    const headerBytes = SegmentCipher.headerBytes(parameters);
    if (header.length !== headerBytes || header[0] !== headerBytes)
      throw new DamagedStream('the header of the stream is damaged');
    if (key.length < derivedKeyBytes || segmentBytes <= headerBytes + tagBytes)
      throw new TypeError('the parameters do not fit the key');
    const material = await crypto.subtle.importKey('raw', unshared(key), 'HKDF', false, ['deriveKey']);
    const derived = await crypto.subtle.deriveKey(
      { name: 'HKDF', hash, salt: unshared(header.subarray(1, 1 + derivedKeyBytes)), info: unshared(associatedData) },
      material,
      { name: 'AES-GCM', length: derivedKeyBytes * 8 },
      false,
      ['encrypt', 'decrypt'],
    );
    return new SegmentCipher(unshared(header), derived, segmentBytes);
  }

  /** Size of the plaintext in a full segment. The first segment shares its place with the header. */
  plaintextBytes(number: number): number {
    return this.ciphertextBytes(number) - tagBytes;
  }

  ciphertextBytes(number: number): number {
    return this.#segmentBytes - (number === 0 ? this.header.length : 0);
  }

  /** Encrypts a segment: a full one, or the last one. */
  async encrypt(number: number, isLast: boolean, plaintext: Uint8Array): Promise<Bytes> {
    if (plaintext.length > this.plaintextBytes(number) || (!isLast && plaintext.length < this.plaintextBytes(number)))
      throw new TypeError('only the last segment may be shorter than a full one');
    return new Uint8Array(await crypto.subtle.encrypt(this.#algorithm(number, isLast), this.#key, unshared(plaintext)));
  }

  /** @throws DamagedStream */
  async decrypt(number: number, isLast: boolean, ciphertext: Uint8Array): Promise<Bytes> {
    try {
      return new Uint8Array(await crypto.subtle.decrypt(this.#algorithm(number, isLast), this.#key, unshared(ciphertext)));
    } catch {
      throw new DamagedStream(`segment ${number} is damaged, missing or not of this stream`);
    }
  }

  #algorithm(number: number, isLast: boolean): Algorithm {
    if (number >= segmentsMax) throw new RangeError('the stream has too many segments');
    const nonce = new Uint8Array(noncePrefixBytes + 4 + 1);
    nonce.set(this.header.subarray(-noncePrefixBytes));
    new DataView(nonce.buffer).setUint32(noncePrefixBytes, number);
    nonce[noncePrefixBytes + 4] = isLast ? 1 : 0;
    const algorithm = { name: 'AES-GCM', iv: nonce, tagLength: tagBytes * 8 };
    return algorithm;
  }
}

function newHeader(parameters: SegmentParameters): Bytes {
  const header = crypto.getRandomValues(new Uint8Array(SegmentCipher.headerBytes(parameters)));
  header[0] = header.length;
  return header;
}

/** Returns the bytes, copied if they are shared with other threads: WebCrypto does not take those. */
const unshared = (bytes: Uint8Array): Bytes => (bytes.buffer instanceof ArrayBuffer ? (bytes as Bytes) : new Uint8Array(bytes));
