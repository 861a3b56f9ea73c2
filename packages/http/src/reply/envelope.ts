import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { WrapInfo } from '@transitd/access';
import type { Reply } from './reply.ts';

const idMember = '"request_id":"';
const beforeId = `{${idMember}`;
const beforeData = '","lease_id":"","renewable":false,"lease_duration":0,"data":';
const beforeWarnings = ',"wrap_info":null,"warnings":';
const end = ',"auth":null}\n';

/**
 * Returns the success envelope around `data`. It concatenates strings, since the data is already JSON.
 * @param data - JSON text; values from a caller must have gone through `JSON.stringify`
 */
export function envelope(data: string, warnings: readonly string[] = []): string {
  return beginning(data) + ending(warnings);
}

const beginning = (data: string): string => beforeId + randomUUID() + beforeData + data;

const ending = (warnings: readonly string[]): string =>
  beforeWarnings + (warnings.length === 0 ? 'null' : JSON.stringify(warnings)) + end;

/** Returns 200 with the envelope around `data` (JSON text). */
export const dataReply = (data: string, warnings?: readonly string[]): Reply => ({ status: 200, body: envelope(data, warnings) });

/**
 * Returns 200 with the envelope around long data, which is read while it is sent. If nobody reads the reply, destroy its stream, so that
 * `rest` ends.
 * @param data - the beginning of a JSON text, and `rest` the other parts of it
 */
export function longDataReply(data: string, rest: AsyncIterable<string>, warnings: readonly string[] = []): Reply {
  const parts = async function* () {
    yield* rest;
    yield ending(warnings);
  };
  return { status: 200, body: beginning(data), stream: Readable.from(parts(), { objectMode: false }) };
}

const beforeAuth = '","lease_id":"","renewable":false,"lease_duration":0,"data":null,"wrap_info":null,"warnings":';

/** Returns 200 with `auth` (JSON text) in the envelope. @param issued - the token, if this reply is the first to show it */
export const authReply = (auth: string, warnings: readonly string[], issued?: Reply['issued']): Reply => ({
  ...(issued && { issued }),
  status: 200,
  body: `${beforeId}${randomUUID()}${beforeAuth}${warnings.length === 0 ? 'null' : JSON.stringify(warnings)},"auth":${auth}}\n`,
});

/** Returns the envelope around long data, in pieces of UTF-8. @param data - the parts of a JSON text */
export const envelopeInPieces = (data: readonly Buffer[], warnings: readonly string[] = []): Buffer[] => [
  Buffer.from(beginning('')),
  ...data,
  Buffer.from(ending(warnings)),
];

/** Returns 200 with the envelope around `data`, the UTF-8 of a long JSON text that is kept: it is sent without a copy. */
export const keptDataReply = (data: Buffer, warnings?: readonly string[]): Reply => ({
  status: 200,
  body: envelopeInPieces([data], warnings),
});

/** Replaces the request id in an envelope in one or several pieces, whose first one contains the id. */
export function replyWithRequestId(reply: Reply, id: string): Reply {
  const { body } = reply;
  if (body === undefined) return reply;
  if (typeof body === 'string') return { ...reply, body: withRequestId(body, id) };
  const [first = Buffer.alloc(0), ...rest] = body;
  return { ...reply, body: [Buffer.from(withRequestId(first.toString(), id)), ...rest] };
}

/** Replaces the request id in an envelope; a body without an envelope is returned unchanged. @param id - a UUID */
export function withRequestId(body: string, id: string): string {
  const end = body.indexOf(beforeData);
  const begin = end - id.length;
  return begin < 0 || !body.startsWith(idMember, begin - idMember.length) ? body : body.slice(0, begin) + id + body.slice(end);
}

/**
 * Adds the warnings that an envelope does not have yet. Without an envelope, and in one that continues as a stream, there is no place for
 * them.
 */
export function replyWithWarnings(reply: Reply, warnings: readonly string[]): Reply {
  const { body, headers, stream } = reply;
  if (body === undefined || stream !== undefined || headers?.['Content-Type'] !== undefined) return reply;
  if (typeof body === 'string') return { ...reply, body: withWarningsAtEnd(body, warnings) };
  const last = body.at(-1)?.toString() ?? '';
  return { ...reply, body: [...body.slice(0, -1), Buffer.from(withWarningsAtEnd(last, warnings))] };
}

/** Text before the member after the warnings. Neither it nor `beforeWarnings` occurs within a JSON string, which has no bare quotes. */
const afterWarnings = ',"auth":';

/** Adds warnings to the end of an envelope; a text without one is returned unchanged. */
function withWarningsAtEnd(text: string, added: readonly string[]): string {
  const at = text.lastIndexOf(beforeWarnings);
  if (at < 0) return text;
  const begin = at + beforeWarnings.length;
  const end = text.indexOf(afterWarnings, begin);
  const present = (JSON.parse(text.slice(begin, end)) as readonly string[] | null) ?? [];
  return text.slice(0, begin) + JSON.stringify([...new Set([...present, ...added])]) + text.slice(end);
}

/** Returns the reply that is sent instead of a wrapped response. The status of that response is sent when it is unwrapped. */
export function wrapReply({ token, accessor, path, createdMs, ttlS, wrappedAccessor }: WrapInfo): Reply {
  const info = {
    token,
    accessor,
    ttl: ttlS,
    creation_time: new Date(createdMs).toISOString(),
    creation_path: path,
    ...(wrappedAccessor !== '' && { wrapped_accessor: wrappedAccessor }),
  };
  return { status: 200, body: envelope('null').replace('"wrap_info":null', () => `"wrap_info":${JSON.stringify(info)}`) };
}

/** Returns 200 with `data` in the envelope and its members again at the top level, where older clients and the Go client look for them. */
export function topLevelDataReply(data: object): Reply {
  const text = JSON.stringify(data);
  const members = text === '{}' ? '{' : `${text.slice(0, -1)},`;
  return { status: 200, body: `${members}${envelope(text).slice(1)}` };
}

/** Reply to a write without a result. */
export const noContentReply: Reply = { status: 204 };

/** Returns the reply to a write without a result: 204, or 200 if there are warnings. */
export const writtenReply = (warnings: readonly string[]): Reply =>
  warnings.length === 0 ? noContentReply : dataReply('null', warnings);

/** Returns `{"errors":[...]}`, with warnings if there are any. The list is empty if there is no message, for example for a missing key. */
export const errorsBody = (messages: readonly string[], warnings: readonly string[] = []): string =>
  `{"errors":${JSON.stringify(messages)}${warnings.length === 0 ? '' : `,"warnings":${JSON.stringify(warnings)}`}}\n`;
