import { DataKeyCache, type DataKeyLimits } from './data-key-cache.ts';
import { type ByteStream, decryptingStream, encryptingStream, joined } from './envelope-stream.ts';
import { decodeFileHeader, encodeFileHeader } from './file-header.ts';
import { DamagedStream, dataKeyBytes, fileParameters, SegmentCipher } from './segment-cipher.ts';
import type { TransitCalls } from './transit.ts';

export interface EnvelopeOptions {
  /** base64, for a derived key. */
  readonly context?: string;
  readonly limits?: DataKeyLimits;
  /** Milliseconds, of a clock that never goes back. */
  readonly nowMs?: () => number;
}

/**
 * Encrypts messages on this side with data keys that the named key wraps, so that one call to the service serves many messages. The format
 * is that of `transitd key encrypt-file`. Each message has its own AES key, derived from the data key (see `SegmentCipher`).
 */
export class EnvelopeCipher {
  readonly #name: string;
  readonly #keys: DataKeyCache;

  constructor(transit: TransitCalls, name: string, options: EnvelopeOptions = {}) {
    this.#name = name;
    this.#keys = new DataKeyCache(transit, name, options);
  }

  /**
   * Encrypts a message in memory.
   * @param associatedData - authenticated, and required again to decrypt
   * @throws RefusedError, UnansweredError
   */
  async encrypt(plaintext: Uint8Array, associatedData: Uint8Array = none): Promise<Uint8Array<ArrayBuffer>> {
    const key = await this.#keys.forEncryption(plaintext.length);
    const { segmentBytes } = fileParameters;
    const header = encodeFileHeader({ key: this.#name, datakey: key.wrapped, segmentBytes });
    const cipher = await SegmentCipher.create(key.plaintext, joined([header.associatedData, associatedData]));
    const parts: Uint8Array[] = [header.bytes, cipher.header];
    for (let [number, at] = [0, 0]; ; number++) {
      const part = plaintext.subarray(at, at + cipher.plaintextBytes(number));
      at += part.length;
      parts.push(await cipher.encrypt(number, at === plaintext.length, part));
      if (at === plaintext.length) return joined(parts);
    }
  }

  /** @throws DamagedStream if the message or the associated data is not as it was; RefusedError, UnansweredError */
  async decrypt(message: Uint8Array, associatedData: Uint8Array = none): Promise<Uint8Array<ArrayBuffer>> {
    const decoded = decodeFileHeader(message);
    if (decoded === undefined) throw new DamagedStream('the header of the message is truncated');
    const { header, bytes } = decoded;
    if (header.key !== this.#name) throw new DamagedStream('the message names another key');
    const key = await this.#keys.forDecryption(header.datakey);
    if (key.length !== dataKeyBytes) throw new DamagedStream('the data key of the message is of another size');
    const parameters = { ...fileParameters, segmentBytes: header.segmentBytes };
    let at = bytes + SegmentCipher.headerBytes(parameters);
    const cipher = await SegmentCipher.create(
      key,
      joined([decoded.associatedData, associatedData]),
      parameters,
      message.subarray(bytes, at),
    );
    const parts: Uint8Array[] = [];
    for (let number = 0; ; number++) {
      const part = message.subarray(at, at + cipher.ciphertextBytes(number));
      at += part.length;
      parts.push(await cipher.decrypt(number, at === message.length, part));
      if (at === message.length) return joined(parts);
    }
  }

  /**
   * Encrypts a stream of any size, with the memory of a few segments of 1 MiB. Each stream has a data key of its own.
   * @param associatedData - authenticated, and required again to decrypt
   */
  encryptStream(associatedData: Uint8Array = none): ByteStream {
    return encryptingStream({ name: this.#name, associatedData }, () => this.#keys.forStream());
  }

  /**
   * Decrypts a stream, also a message of `encrypt` or a file of `transitd key encrypt-file`. Each piece that it returns was verified, but
   * only the end of the stream shows that nothing is missing: discard everything if the stream fails with DamagedStream.
   */
  decryptStream(associatedData: Uint8Array = none): ByteStream {
    return decryptingStream({ name: this.#name, associatedData }, (wrapped) => this.#keys.forDecryption(wrapped));
  }

  /** Forgets all data keys, for example when the rights of this process change. */
  forgetKeys(): void {
    this.#keys.clear();
  }
}

const none = new Uint8Array(0);
