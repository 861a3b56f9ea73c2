import { CodecError } from '@transitd/raft-core';
import { pathFault } from './path.ts';

// A leading U+FEFF is part of the path, so that two byte strings never decode to one path.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads forward and never past the end. */
export class Reader {
  readonly #data: Buffer;
  #at = 0;

  constructor(data: Uint8Array) {
    this.#data = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  }

  /** Unsigned integer of 1 to 6 bytes. */
  uint(width: number): number {
    const at = this.#take(width);
    return this.#data.readUIntBE(at, width);
  }

  bytes(length: number): Uint8Array {
    const at = this.#take(length);
    return this.#data.subarray(at, at + length);
  }

  text(): string {
    return this.#text(this.bytes(this.uint(2)));
  }

  path(): string {
    const path = this.text();
    const fault = pathFault(path);
    if (fault !== undefined) throw new CodecError(`a record's path ${fault}`);
    return path;
  }

  end(): void {
    if (this.#at !== this.#data.length) throw new CodecError('bytes are left over behind the transaction');
  }

  #text(bytes: Uint8Array): string {
    try {
      return utf8.decode(bytes);
    } catch (error) {
      throw new CodecError("a record's path is not UTF-8", { cause: error });
    }
  }

  #take(length: number): number {
    const at = this.#at;
    if (length > this.#data.length - at) throw new CodecError('the transaction is cut short');
    this.#at = at + length;
    return at;
  }
}
