import { flawOf } from '../confchange/conf-state.ts';
import type { ConfState, NodeId } from '../types.ts';
import { CodecError } from './codec-error.ts';

const FORMAT_VERSION = 1;
const LISTS = ['voters', 'votersOutgoing', 'learners', 'learnersNext'] as const;
const FIELDS = ['version', ...LISTS, 'autoLeave', 'context'].sort().join();

/**
 * A configuration as the data of a `conf` entry: JSON with a version number, in ASCII by construction (ids are numbers,
 * `context` is hex), so one byte is one character. One configuration has one encoding.
 */
export function encodeConfState({ voters, votersOutgoing, learners, learnersNext, autoLeave, context }: ConfState): Uint8Array {
  const hex = Array.from(context, (byte) => byte.toString(16).padStart(2, '0')).join('');
  const lists = { voters, votersOutgoing, learners, learnersNext };
  const json = JSON.stringify({ version: FORMAT_VERSION, ...lists, autoLeave, context: hex });
  return Uint8Array.from(json, (character) => character.charCodeAt(0));
}

/** @throws CodecError for anything that `encodeConfState` does not write, an ill-formed configuration included */
export function decodeConfState(bytes: Uint8Array): ConfState {
  const fields = parseObject(bytes);
  if (Object.keys(fields).sort().join() !== FIELDS) throw new CodecError('A configuration has exactly its own fields.');
  if (fields['version'] !== FORMAT_VERSION) throw new CodecError('The version of the configuration is unknown.');
  const [voters, votersOutgoing, learners, learnersNext] = LISTS.map((list) => ids(fields[list]));
  const { autoLeave } = fields;
  if (!voters || !votersOutgoing || !learners || !learnersNext) throw new CodecError('A list of members is missing.');
  if (typeof autoLeave !== 'boolean') throw new CodecError('autoLeave is true or false.');
  const conf = { voters, votersOutgoing, learners, learnersNext, autoLeave, context: unhex(fields['context']) };
  const flaw = flawOf(conf);
  if (flaw !== undefined) throw new CodecError(`The configuration is ill-formed: ${flaw}.`);
  return conf;
}

function parseObject(bytes: Uint8Array): Record<string, unknown> {
  if (bytes.some((byte) => byte > 0x7f)) throw new CodecError('A configuration is ASCII.');
  const json = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    throw new CodecError('A configuration is JSON.');
  }
  if (typeof parsed !== 'object' || parsed === null) throw new CodecError('A configuration is an object.');
  return { ...parsed };
}

function ids(value: unknown): NodeId[] {
  if (!Array.isArray(value)) throw new CodecError('Members are a list.');
  return value.map((id: unknown) => {
    if (typeof id !== 'number') throw new CodecError('A member is a number.');
    return id;
  });
}

function unhex(value: unknown): Uint8Array {
  if (typeof value !== 'string' || !/^(?:[0-9a-f]{2})*$/.test(value)) throw new CodecError('context is lower-case hex.');
  return Uint8Array.from({ length: value.length / 2 }, (_, i) => Number.parseInt(value.slice(2 * i, 2 * i + 2), 16));
}
