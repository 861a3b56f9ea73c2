import type { SnapshotMeta } from '../types.ts';
import { CodecError } from './codec-error.ts';
import { confOfJson, jsonOfConf } from './conf-state.ts';
import { decodeJson, encodeJson, fieldsOf } from './json.ts';

const FORMAT_VERSION = 1;

/**
 * Newest term of a message, and newest term and index of a snapshot, that a node accepts from others. It stores them, and the next election
 * and the next entry need one above them; the encoding ends at 2^48 - 1. A frame with a later one changes nothing.
 */
export const positionMax = 2 ** 47 - 1;

/** Encodes the description of a snapshot as JSON with a version number: it is offered seldom and must stay readable for a long time. */
export const encodeSnapshotMeta = ({ index, term, conf, confIndex }: SnapshotMeta): Uint8Array =>
  encodeJson({ version: FORMAT_VERSION, index, term, confIndex, conf: jsonOfConf(conf) });

/** @throws CodecError for anything that `encodeSnapshotMeta` does not write, and for positions above `positionMax` */
export function decodeSnapshotMeta(bytes: Uint8Array): SnapshotMeta {
  const fields = fieldsOf(decodeJson(bytes), ['version', 'index', 'term', 'confIndex', 'conf']);
  if (fields['version'] !== FORMAT_VERSION) throw new CodecError('The version of the snapshot is unknown.');
  const [index, term, confIndex] = [fields['index'], fields['term'], fields['confIndex']].map(position);
  if (index === undefined || term === undefined || confIndex === undefined) throw new CodecError('A position is missing.');
  if (confIndex > index) throw new CodecError('The configuration is newer than its snapshot.');
  return { index, term, confIndex, conf: confOfJson(fields['conf']) };
}

function position(value: unknown): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > positionMax) {
    throw new CodecError(`An index or a term is not a whole number up to ${positionMax}.`);
  }
  return value;
}
