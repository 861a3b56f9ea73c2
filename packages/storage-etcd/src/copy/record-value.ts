const format = 1;
const headBytes = 7;

/** A record as etcd keeps it. `revision` is 0 if the revision of the key is that of the record. */
export interface RecordValue {
  readonly revision: number;
  readonly value: Uint8Array;
}

/** Encodes `format u8 | revision u48 | value`. A record that was staged keeps the revision at which it took effect. */
export function encodeRecord({ revision, value }: RecordValue): Uint8Array {
  const out = Buffer.allocUnsafe(headBytes + value.length);
  out.writeUInt8(format);
  out.writeUIntBE(revision, 1, 6);
  out.set(value, headBytes);
  return out;
}

/** Returns undefined for bytes that {@link encodeRecord} did not write. The value is a view of `bytes`. */
export function decodeRecord(bytes: Uint8Array): RecordValue | undefined {
  if (bytes.length < headBytes || bytes[0] !== format) return undefined;
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, headBytes);
  return { revision: head.readUIntBE(1, 6), value: bytes.subarray(headBytes) };
}
