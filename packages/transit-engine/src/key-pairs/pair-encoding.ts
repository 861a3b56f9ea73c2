/** The two halves of whatever a hybrid key has: signature, public key, private key. */
export interface Pair {
  /** Of the post-quantum scheme. */
  readonly pqc: Uint8Array;
  /** Of the elliptic-curve scheme. */
  readonly ec: Uint8Array;
}

const lengthBytes = 4;

/** `length of pqc u32 big-endian | pqc | ec`. */
export function encodePair({ pqc, ec }: Pair): Buffer {
  const pair = Buffer.alloc(lengthBytes + pqc.length + ec.length);
  pair.writeUInt32BE(pqc.length, 0);
  pair.set(pqc, lengthBytes);
  pair.set(ec, lengthBytes + pqc.length);
  return pair;
}

/** The halves as views of `bytes`; undefined for what {@link encodePair} does not write. */
export function decodePair(bytes: Uint8Array): Pair | undefined {
  const pair = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (pair.length < lengthBytes) return undefined;
  const ecAt = lengthBytes + pair.readUInt32BE(0);
  return ecAt > pair.length ? undefined : { pqc: pair.subarray(lengthBytes, ecAt), ec: pair.subarray(ecAt) };
}
