import type { Message } from '../../../types.ts';
import { decodeMessage, encodeMessage, WIRE_VERSION } from '../../../wire/message.ts';
import type { WireVersions } from '../../../wire/version.ts';

/** A message as a node writes it in that version. Simulated versions have the layout of the one there is. */
export function writeFrame(message: Message, version: number): Uint8Array {
  const frame = encodeMessage(message);
  frame[0] = version;
  return frame;
}

/** As a node that reads these versions takes it. @throws CodecError for any other, as the codec does */
export function readFrame(frame: Uint8Array, { oldest, newest }: WireVersions): Message {
  const [version = 0] = frame;
  const isKnown = version >= oldest && version <= newest;
  const copy = frame.slice();
  copy[0] = isKnown ? WIRE_VERSION : WIRE_VERSION + 1;
  return decodeMessage(copy);
}
