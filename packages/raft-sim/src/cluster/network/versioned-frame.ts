import { decodeMessage, encodeMessage, type Message, WIRE_VERSION, type WireVersions } from '@transitd/raft-core';

/** Writes a message as a node of that version does. Simulated versions above the newest real one share its layout. */
export function writeFrame(message: Message, version: number): Uint8Array {
  const frame = encodeMessage(message, layoutOf(version));
  frame[0] = version;
  return frame;
}

/** Reads a frame as a node that knows these versions does. @throws CodecError for any other version, as the codec does */
export function readFrame(frame: Uint8Array, { oldest, newest }: WireVersions): Message {
  const [version = 0] = frame;
  const isKnown = version >= oldest && version <= newest;
  const copy = frame.slice();
  copy[0] = isKnown ? layoutOf(version) : WIRE_VERSION + 1;
  return decodeMessage(copy);
}

const layoutOf = (version: number): number => Math.min(version, WIRE_VERSION);
