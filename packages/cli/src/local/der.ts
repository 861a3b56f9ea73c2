/** One element of a DER encoding (X.690). */
export interface DerElement {
  /** The identifier byte, such as 0x30 for a sequence. */
  readonly tag: number;
  readonly content: Buffer;
  /** The whole element, with identifier and length. */
  readonly whole: Buffer;
}

/** The bytes are not DER, or not of the expected structure. */
export class DerError extends Error {
  override readonly name = 'DerError';
}

/** Reads elements that follow each other. Elements with tags above 30 and of indefinite length are refused. @throws DerError */
export function derElements(bytes: Buffer): readonly DerElement[] {
  const elements: DerElement[] = [];
  for (let rest = bytes; rest.length > 0; ) {
    const element = firstElement(rest);
    elements.push(element);
    rest = rest.subarray(element.whole.length);
  }
  return elements;
}

function firstElement(bytes: Buffer): DerElement {
  const [tag = 0, first = 0] = bytes;
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  const start = 2 + lengthBytes;
  if ((tag & 0x1f) === 0x1f || first === 0x80 || lengthBytes > 4 || bytes.length < start) throw new DerError('this is not DER');
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(2, lengthBytes);
  const whole = bytes.subarray(0, start + length);
  if (whole.length < start + length) throw new DerError('the DER is truncated');
  return { tag, content: whole.subarray(start), whole };
}
