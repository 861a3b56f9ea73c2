import type { Request } from '../../history/operation.ts';

/** The content of an entry: one client's write to one key, identified by a number of its own. */
export interface Command {
  readonly operation: number;
  readonly key: number;
  readonly request: Exclude<Request, { readonly kind: 'read' }>;
}

/** The result of a command. */
export interface MachineResult {
  /** Whether a compare-and-set found the expected value; true for everything else. */
  readonly swapped: boolean;
}

const kinds = ['write', 'cas', 'append'] as const;
const HEADER_BYTES = 14;

/** Encodes as `kind u8 | key u8 | operation u32 | two u32`, with zeros up to the requested size, so that entries differ in size. */
export function encodeCommand({ operation, key, request }: Command, size = HEADER_BYTES): Uint8Array {
  const data = new Uint8Array(Math.max(size, HEADER_BYTES));
  const view = new DataView(data.buffer);
  view.setUint8(0, kinds.indexOf(request.kind));
  view.setUint8(1, key);
  view.setUint32(2, operation);
  view.setUint32(6, request.kind === 'cas' ? request.from : 0);
  view.setUint32(10, request.kind === 'cas' ? request.to : request.value);
  return data;
}

export const operationOf = (data: Uint8Array): number => decodeCommand(data).operation;

export function decodeCommand(data: Uint8Array): Command {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const kind = kinds[view.getUint8(0)];
  const [operation, key, from, to] = [view.getUint32(2), view.getUint8(1), view.getUint32(6), view.getUint32(10)];
  if (kind === undefined) throw new Error('a command of an unknown kind was committed');
  return { operation, key, request: kind === 'cas' ? { kind, from, to } : { kind, value: to } };
}
