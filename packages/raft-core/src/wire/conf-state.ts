import { flawOf } from '../confchange/conf-state.ts';
import type { ConfState, NodeId } from '../types.ts';
import { CodecError } from './codec-error.ts';
import { decodeJson, encodeJson, fieldsOf } from './json.ts';

const FORMAT_VERSION = 1;
const LISTS = ['voters', 'votersOutgoing', 'learners', 'learnersNext'] as const;
const FIELDS = ['version', ...LISTS, 'autoLeave', 'context'];

/** Encodes a configuration as the data of a `conf` entry. Each configuration has one encoding. */
export const encodeConfState = (conf: ConfState): Uint8Array => encodeJson(jsonOfConf(conf));

/** @throws CodecError for anything that `encodeConfState` does not write, including invalid configurations */
export const decodeConfState = (bytes: Uint8Array): ConfState => confOfJson(decodeJson(bytes));

/** Returns the JSON fields of a configuration, alone or within another object: numbers, and `context` as hex. */
export function jsonOfConf({ voters, votersOutgoing, learners, learnersNext, autoLeave, context }: ConfState): object {
  const hex = Array.from(context, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return { version: FORMAT_VERSION, voters, votersOutgoing, learners, learnersNext, autoLeave, context: hex };
}

/** @throws CodecError */
export function confOfJson(json: unknown): ConfState {
  const fields = fieldsOf(json, FIELDS);
  if (fields['version'] !== FORMAT_VERSION) throw new CodecError('The version of the configuration is unknown.');
  const [voters, votersOutgoing, learners, learnersNext] = LISTS.map((list) => ids(fields[list]));
  const { autoLeave } = fields;
  if (!voters || !votersOutgoing || !learners || !learnersNext) throw new CodecError('A list of members is missing.');
  if (typeof autoLeave !== 'boolean') throw new CodecError('autoLeave is neither true nor false.');
  const conf = { voters, votersOutgoing, learners, learnersNext, autoLeave, context: unhex(fields['context']) };
  const flaw = flawOf(conf);
  if (flaw !== undefined) throw new CodecError(`The configuration is ill-formed: ${flaw}.`);
  return conf;
}

function ids(value: unknown): NodeId[] {
  if (!Array.isArray(value)) throw new CodecError('The members are not a list.');
  return value.map((id: unknown) => {
    if (typeof id !== 'number') throw new CodecError('The id of a member is not a number.');
    return id;
  });
}

function unhex(value: unknown): Uint8Array {
  if (typeof value !== 'string' || !/^(?:[0-9a-f]{2})*$/.test(value)) throw new CodecError('context is not lower-case hex.');
  return Uint8Array.from({ length: value.length / 2 }, (_, i) => Number.parseInt(value.slice(2 * i, 2 * i + 2), 16));
}
