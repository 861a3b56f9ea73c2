import { CodecError } from './codec-error.ts';

/**
 * Reads fixed-width fields, big-endian. Every read is checked against the end first, so that a false length costs nothing. All methods
 * throw CodecError if the bytes end too early.
 */
export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #offset = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get left(): number {
    return this.#bytes.length - this.#offset;
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  flag(): boolean {
    const value = this.u8();
    if (value > 1) throw new CodecError('A flag is neither 0 nor 1.');
    return value === 1;
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2));
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4));
  }

  u48(): number {
    const at = this.#take(6);
    return this.#view.getUint16(at) * 2 ** 32 + this.#view.getUint32(at + 2);
  }

  /** Returns a view of the next bytes, not a copy. */
  raw(length: number): Uint8Array {
    const at = this.#take(length);
    return this.#bytes.subarray(at, at + length);
  }

  ascii(): string {
    const characters = this.raw(this.u8());
    let text = '';
    for (const code of characters) {
      if (code > 0x7f) throw new CodecError('A name is not ASCII.');
      text += String.fromCharCode(code);
    }
    return text;
  }

  /**
   * Reads the number of items that follow, each of at least `itemBytesMin`. It is checked against the bytes left, so that a false number
   * allocates nothing.
   */
  count(itemBytesMin: number): number {
    const count = this.u32();
    if (count * itemBytesMin > this.left) throw new CodecError('A list ends before its last item.');
    return count;
  }

  end(): void {
    if (this.left > 0) throw new CodecError('Bytes are left over after the end.');
  }

  #take(length: number): number {
    const at = this.#offset;
    if (length > this.#bytes.length - at) throw new CodecError('The bytes are cut short.');
    this.#offset = at + length;
    return at;
  }
}
