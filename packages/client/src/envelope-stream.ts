import { ByteQueue } from './byte-queue.ts';
import type { DataKey } from './data-key-cache.ts';
import { decodeFileHeader, encodeFileHeader, fileHeaderBytesMax } from './file-header.ts';
import { DamagedStream, dataKeyBytes, fileParameters, SegmentCipher } from './segment-cipher.ts';

export type ByteStream = TransformStream<Uint8Array, Uint8Array>;

export interface StreamOptions {
  /** Name of the key that wraps the data key. */
  readonly name: string;
  /** Authenticated with every segment, besides the header. */
  readonly associatedData: Uint8Array;
}

/** Encrypts a stream in the format of `encodeFileHeader` and `SegmentCipher`. @param newKey - called once, for the first bytes */
export const encryptingStream = ({ name, associatedData }: StreamOptions, newKey: () => Promise<DataKey>): ByteStream =>
  segmentStream({
    open: async (_, emit) => {
      const { plaintext, wrapped } = await newKey();
      const header = encodeFileHeader({ key: name, datakey: wrapped, segmentBytes: fileParameters.segmentBytes });
      const cipher = await SegmentCipher.create(plaintext, joined([header.associatedData, associatedData]));
      emit(header.bytes);
      emit(cipher.header);
      return cipher;
    },
    sizeOf: (cipher, number) => cipher.plaintextBytes(number),
    convert: (cipher, number, isLast, bytes) => cipher.encrypt(number, isLast, bytes),
  });

/** Decrypts a stream of `encryptingStream`. @param openKey - returns the plaintext of the wrapped data key */
export const decryptingStream = (
  { name, associatedData }: StreamOptions,
  openKey: (wrapped: string) => Promise<Uint8Array>,
): ByteStream =>
  segmentStream({
    open: async (queue) => {
      const decoded = decodeFileHeader(queue.first(fileHeaderBytesMax));
      const headerBytes = SegmentCipher.headerBytes(fileParameters);
      if (decoded === undefined || queue.length < decoded.bytes + headerBytes) return undefined;
      const { header } = decoded;
      if (header.key !== name) throw new DamagedStream('the stream names another key');
      const key = await openKey(header.datakey);
      if (key.length !== dataKeyBytes) throw new DamagedStream('the data key of the stream is of another size');
      queue.take(decoded.bytes);
      const parameters = { ...fileParameters, segmentBytes: header.segmentBytes };
      const data = joined([decoded.associatedData, associatedData]);
      return SegmentCipher.create(key, data, parameters, queue.take(headerBytes));
    },
    sizeOf: (cipher, number) => cipher.ciphertextBytes(number),
    convert: (cipher, number, isLast, bytes) => cipher.decrypt(number, isLast, bytes),
  });

interface Direction {
  /** Returns undefined while the queue does not contain the whole header. */
  readonly open: (queue: ByteQueue, emit: (bytes: Uint8Array) => void) => Promise<SegmentCipher | undefined>;
  /** Size of a full segment of the input. */
  readonly sizeOf: (cipher: SegmentCipher, number: number) => number;
  readonly convert: (cipher: SegmentCipher, number: number, isLast: boolean, bytes: Uint8Array) => Promise<Uint8Array>;
}

/** Converts segment by segment. A full segment waits until more bytes follow: only then is it known not to be the last one. */
function segmentStream({ open, sizeOf, convert }: Direction): ByteStream {
  const queue = new ByteQueue();
  let cipher: SegmentCipher | undefined;
  let number = 0;
  const advance = async (emit: (bytes: Uint8Array) => void): Promise<SegmentCipher | undefined> => {
    cipher ??= await open(queue, emit);
    if (cipher === undefined) return undefined;
    for (; queue.length > sizeOf(cipher, number); number++)
      emit(await convert(cipher, number, false, queue.take(sizeOf(cipher, number))));
    return cipher;
  };
  return new TransformStream<Uint8Array, Uint8Array>({
    async transform(chunk, sink) {
      queue.add(chunk);
      await advance((bytes) => sink.enqueue(bytes));
    },
    async flush(sink) {
      const opened = await advance((bytes) => sink.enqueue(bytes));
      if (opened === undefined) throw new DamagedStream('the header of the stream is truncated');
      sink.enqueue(await convert(opened, number, true, queue.take(queue.length)));
    },
  });
}

export function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
