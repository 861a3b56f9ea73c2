import { CodecError } from './codec-error.ts';

/** Writes fixed-width fields, big-endian, into a buffer of a known maximum size; calls chain. */
export class ByteWriter {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #offset = 0;

  constructor(sizeMax: number) {
    this.#bytes = new Uint8Array(sizeMax);
    this.#view = new DataView(this.#bytes.buffer);
  }

  u8(value: number): this {
    this.#view.setUint8(this.#offset, value);
    this.#offset += 1;
    return this;
  }

  flag(value: boolean): this {
    return this.u8(value ? 1 : 0);
  }

  u32(value: number): this {
    this.#view.setUint32(this.#offset, value);
    this.#offset += 4;
    return this;
  }

  /** @throws CodecError for anything but an integer from 0 to 2^48 - 1 */
  u48(value: number): this {
    if (!Number.isInteger(value) || value < 0 || value >= 2 ** 48)
      throw new CodecError(`A field is not an integer from 0 to 2^48 - 1: ${value}.`);
    this.#view.setUint16(this.#offset, value / 2 ** 32);
    this.#view.setUint32(this.#offset + 2, value % 2 ** 32);
    this.#offset += 6;
    return this;
  }

  raw(bytes: Uint8Array): this {
    this.#bytes.set(bytes, this.#offset);
    this.#offset += bytes.length;
    return this;
  }

  /** @throws CodecError for more than 255 characters, or one beyond ASCII */
  ascii(text: string): this {
    if (text.length > 255) throw new CodecError('A name is longer than 255 characters.');
    this.u8(text.length);
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) throw new CodecError('A name is not ASCII.');
      this.u8(code);
    }
    return this;
  }

  /** Returns what was written; the buffer is not copied. */
  written(): Uint8Array {
    return this.#bytes.subarray(0, this.#offset);
  }
}
