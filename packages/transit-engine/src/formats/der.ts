/** One element of a DER encoding (X.690 §10). `content` is a view of the parsed bytes. */
export interface DerElement {
  readonly tag: number;
  readonly content: Uint8Array;
}

export const derTag = {
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectIdentifier: 0x06,
  sequence: 0x30,
  /** Tag of a context-specific, constructed element; add the element's number. */
  explicit: 0xa0,
} as const;

/** Parses exactly one element; returns undefined for anything else. */
export function parseDer(bytes: Uint8Array): DerElement | undefined {
  const elements = parseDerSequence(bytes);
  return elements?.length === 1 ? elements[0] : undefined;
}

/** Parses a sequence of elements without a gap; returns undefined for anything else, including lengths that are BER but not DER. */
export function parseDerSequence(bytes: Uint8Array): DerElement[] | undefined {
  const elements: DerElement[] = [];
  for (let at = 0; at < bytes.length; ) {
    const first = parseFirstDer(bytes.subarray(at));
    if (first === undefined) return undefined;
    elements.push(first.element);
    at += first.bytes;
  }
  return elements;
}

/** Parses the element that the bytes begin with, whatever follows it; returns undefined if they begin with none. */
export function parseFirstDer(bytes: Uint8Array): { readonly element: DerElement; readonly bytes: number } | undefined {
  const [tag = 0] = bytes;
  const length = parseLength(bytes, 1);
  if (length === undefined || (tag & 0x1f) === 0x1f) return undefined;
  const end = length.contentAt + length.contentBytes;
  if (end > bytes.length) return undefined;
  return { element: { tag, content: bytes.subarray(length.contentAt, end) }, bytes: end };
}

/** Encodes an element whose content is the concatenated parts. If it holds a secret, the caller wipes it. */
export function encodeDer(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const contentBytes = parts.reduce((sum, part) => sum + part.length, 0);
  const header = encodeHeader(tag, contentBytes);
  const element = Buffer.allocUnsafeSlow(header.length + contentBytes);
  element.set(header);
  let at = header.length;
  for (const part of parts) {
    element.set(part, at);
    at += part.length;
  }
  return element;
}

/** Encodes a non-negative INTEGER. @param magnitude - big-endian; leading zeros are ignored */
export function encodeDerInteger(magnitude: Uint8Array): Buffer {
  const digits = withoutLeadingZeros(magnitude);
  const sign = (digits[0] ?? 0x80) >= 0x80 ? Uint8Array.of(0) : new Uint8Array(0);
  return encodeDer(derTag.integer, sign, digits);
}

/** Returns the big-endian magnitude of a non-negative INTEGER without leading zeros; undefined for a negative or overlong one. */
export function derInteger({ tag, content }: DerElement): Uint8Array | undefined {
  const [first, second = 0] = content;
  if (tag !== derTag.integer || first === undefined || first >= 0x80) return undefined;
  if (first === 0 && content.length > 1 && second < 0x80) return undefined;
  return withoutLeadingZeros(content);
}

export function withoutLeadingZeros(bytes: Uint8Array): Uint8Array {
  const first = bytes.findIndex((byte) => byte !== 0);
  return first === -1 ? bytes.subarray(bytes.length) : bytes.subarray(first);
}

/** Encodes an object identifier from its dotted form (X.690 §8.19). */
export function encodeOid(dotted: string): Buffer {
  const [root = 0, branch = 0, ...arcs] = dotted.split('.').map(Number);
  const digits = [root * 40 + branch, ...arcs].flatMap((arc) => {
    const septets = [arc & 0x7f];
    for (let rest = arc >>> 7; rest > 0; rest >>>= 7) septets.unshift((rest & 0x7f) | 0x80);
    return septets;
  });
  return encodeDer(derTag.objectIdentifier, Uint8Array.from(digits));
}

function parseLength(bytes: Uint8Array, at: number): { readonly contentAt: number; readonly contentBytes: number } | undefined {
  const first = bytes[at];
  if (first === undefined) return undefined;
  if (first < 0x80) return { contentAt: at + 1, contentBytes: first };
  const digits = first & 0x7f;
  if (digits === 0 || digits > 4 || at + digits >= bytes.length) return undefined;
  let contentBytes = 0;
  for (let digit = 1; digit <= digits; digit++) contentBytes = contentBytes * 256 + (bytes[at + digit] ?? 0);
  const shortest = contentBytes >= 0x80 && (digits === 1 || contentBytes >= 256 ** (digits - 1));
  return shortest ? { contentAt: at + 1 + digits, contentBytes } : undefined;
}

function encodeHeader(tag: number, contentBytes: number): Uint8Array {
  if (contentBytes < 0x80) return Uint8Array.of(tag, contentBytes);
  const digits: number[] = [];
  for (let rest = contentBytes; rest > 0; rest = Math.floor(rest / 256)) digits.unshift(rest % 256);
  return Uint8Array.of(tag, 0x80 | digits.length, ...digits);
}
