import type { Message } from '../types.ts';
import { ByteReader } from './byte-reader.ts';
import { ByteWriter } from './byte-writer.ts';
import { CodecError } from './codec-error.ts';
import { decodeMessage, encodeMessage, frameBytesMax, readVersion, WIRE_VERSION } from './message.ts';

const BATCH = 0;
/** More than a core sends to one peer in one turn. In memory a short message takes many times its length in a frame. */
export const batchMessagesMax = 8_192;

/**
 * Encodes all messages of one turn to one peer as one frame: `version u8 | 0 u8 | (length u32 | message)*`. A single message is sent as its
 * own frame without this envelope.
 * @param version - the version agreed with the receiver
 * @throws CodecError if the messages together exceed the frame limit, or are too many for a batch; then send them one by one
 */
export function encodeBatch(messages: readonly Message[], version = WIRE_VERSION): Uint8Array {
  if (messages.length > batchMessagesMax) throw tooMany();
  const frames = messages.map((message) => encodeMessage(message, version));
  const [only] = frames;
  if (only !== undefined && frames.length === 1) return only;
  const size = frames.reduce((sum, { length }) => sum + 4 + length, 2);
  if (size > frameBytesMax) throw new CodecError(`The frame is longer than ${frameBytesMax} bytes.`);
  const writer = new ByteWriter(size);
  writer.u8(version).u8(BATCH);
  for (const frame of frames) writer.u32(frame.length).raw(frame);
  return writer.written();
}

/** Decodes a frame of one or many messages. Entry data are views of it. @throws CodecError */
export function decodeBatch(frame: Uint8Array): readonly Message[] {
  if (frame[1] !== BATCH) return [decodeMessage(frame)];
  if (frame.length > frameBytesMax) throw new CodecError(`The frame is longer than ${frameBytesMax} bytes.`);
  const reader = new ByteReader(frame);
  readVersion(reader);
  reader.u8();
  const messages: Message[] = [];
  while (reader.left > 0) {
    if (messages.length === batchMessagesMax) throw tooMany();
    messages.push(decodeMessage(reader.raw(reader.u32())));
  }
  return messages;
}

const tooMany = (): CodecError => new CodecError(`The frame has more than ${batchMessagesMax} messages.`);
