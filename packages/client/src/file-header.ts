import { DamagedStream } from './segment-cipher.ts';

/**
 * The beginning of an encrypted file: a line of JSON, which is the associated data of the stream, and a line with the wrapped data key. The
 * second line is not associated data, so that it can be rewrapped: a wrong data key opens no segment.
 */
export interface FileHeader {
  /** Name of the key that wraps the data key. Never used to choose a key: the caller names it. */
  readonly key: string;
  /** The data key, encrypted by the service. */
  readonly datakey: string;
  /** Size of a segment of the stream. */
  readonly segmentBytes: number;
  /** Identity of the source file, so that an interrupted encryption continues only with the same content. */
  readonly source?: string;
}

const format = 'transitd-file-1';
/** A wrapped data key has a few hundred characters, with an RSA key about a thousand. */
export const fileHeaderBytesMax = 16 * 1024;
const [segmentBytesMin, segmentBytesMax] = [1024, 64 * 1024 * 1024];
const [lineEnd, openingBrace] = [0x0a, 0x7b];

/** Returns the line of JSON, with its line end. */
const firstLine = ({ key, segmentBytes, source }: FileHeader): string =>
  `${JSON.stringify({ format, key, segment_bytes: segmentBytes, ...(source !== undefined && { source }) })}\n`;

export const encodeFileHeader = (header: FileHeader): EncodedHeader => {
  const encoder = new TextEncoder();
  const associatedData = encoder.encode(firstLine(header));
  return { associatedData, bytes: encoder.encode(`${firstLine(header)}${header.datakey}\n`) };
};

export interface EncodedHeader {
  /** The first line. */
  readonly associatedData: Uint8Array<ArrayBuffer>;
  /** Both lines. */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface DecodedHeader {
  readonly header: FileHeader;
  readonly associatedData: Uint8Array;
  /** Length of both lines. */
  readonly bytes: number;
}

/**
 * Reads the header of a file.
 * @param start - the first bytes of the file, at most `fileHeaderBytesMax`
 * @returns undefined if the header has not ended and more bytes are necessary
 * @throws DamagedStream if this is not an encrypted file
 */
export function decodeFileHeader(start: Uint8Array): DecodedHeader | undefined {
  const within = start.subarray(0, fileHeaderBytesMax);
  const firstEnd = within.indexOf(lineEnd);
  const secondEnd = firstEnd < 0 ? -1 : within.indexOf(lineEnd, firstEnd + 1);
  if (start.length > 0 && start[0] !== openingBrace) throw notEncrypted();
  if (secondEnd < 0) {
    if (start.length >= fileHeaderBytesMax) throw notEncrypted();
    return undefined;
  }
  const { format: found, key, segment_bytes: segmentBytes, source } = membersIn(within.subarray(0, firstEnd));
  const datakey = textIn(within.subarray(firstEnd + 1, secondEnd));
  const isValid =
    found === format &&
    typeof key === 'string' &&
    typeof segmentBytes === 'number' &&
    Number.isInteger(segmentBytes) &&
    segmentBytes >= segmentBytesMin &&
    segmentBytes <= segmentBytesMax &&
    (source === undefined || typeof source === 'string');
  if (!isValid) throw notEncrypted();
  const header = { key, datakey, segmentBytes, ...(source !== undefined && { source }) };
  return { header, associatedData: start.slice(0, firstEnd + 1), bytes: secondEnd + 1 };
}

const notEncrypted = (): DamagedStream => new DamagedStream('this is not a file that transitd has encrypted');

function membersIn(line: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(textIn(line));
    if (typeof value === 'object' && value !== null) return value as Readonly<Record<string, unknown>>;
  } catch {
    // reported below
  }
  throw notEncrypted();
}

function textIn(line: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(line);
  } catch {
    throw notEncrypted();
  }
}
