import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { type EncodedBody, type Envelope, Rendered, type Reply } from './reply.ts';

/** The content of a response in its final form. */
export interface Encoded {
  readonly body?: EncodedBody | undefined;
  /** Sent after `body`. */
  readonly stream?: Readable | undefined;
}

/** Returns the content of a reply. A JSON body ends with a newline. If nobody reads the content, destroy its stream. */
export function encode(reply: Reply): Encoded {
  if ('envelope' in reply) return encodeEnvelope(reply.envelope, reply.requestId ?? randomUUID());
  if ('errors' in reply) return { body: errorsText(reply.errors, reply.warnings) };
  if ('json' in reply) return { body: `${JSON.stringify(reply.json)}\n` };
  if (!('unwrapped' in reply)) return reply;
  const { unwrapped, warnings = [], requestId } = reply;
  return { body: withWarnings(requestId === undefined ? unwrapped : withRequestId(unwrapped, requestId), warnings) };
}

/** Returns the whole content of a reply without a stream as text; undefined for a reply without content. */
export function bodyText(reply: Reply): string | undefined {
  const { body } = encode(reply);
  return body === undefined ? undefined : joined(body);
}

/** Joins the pieces of a long text at once. */
export const joined = (body: EncodedBody): string =>
  typeof body === 'string' ? body : Buffer.concat(body.map(bytesOf)).toString();

const bytesOf = (piece: string | Buffer): Buffer => (typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece);

/** Returns the length of a body in UTF-8. */
export const bodyBytesOf = (body: EncodedBody): number =>
  typeof body === 'string' ? Buffer.byteLength(body) : body.reduce((sum, { length }) => sum + length, 0);

/** Returns the content of an error response. */
export const errorsText = (messages: readonly string[], warnings: readonly string[] = []): string =>
  `{"errors":${JSON.stringify(messages)}${warnings.length === 0 ? '' : `,"warnings":${JSON.stringify(warnings)}`}}\n`;

const idMember = '"request_id":"';
const beforeData = '","lease_id":"","renewable":false,"lease_duration":0,"data":';
const beforeWarnings = ',"wrap_info":null,"warnings":';
const beforeAuth = ',"auth":';

/** Concatenates strings, since the data may be JSON already, and long. */
function encodeEnvelope({ data, showsDataTwice, auth, wrapInfo, warnings }: Envelope, id: string): Encoded {
  const { json, rest } = data instanceof Rendered ? data : { json: JSON.stringify(data), rest: undefined };
  const repeated = showsDataTwice === true && typeof json === 'string' && json !== '{}' ? `${json.slice(1, -1)},` : '';
  const begin = `{${repeated}${idMember}${id}${beforeData}`;
  const before = wrapInfo === null ? beforeWarnings : `,"wrap_info":${JSON.stringify(wrapInfo)},"warnings":`;
  const after = auth === null ? `${beforeAuth}null}\n` : `${beforeAuth}${JSON.stringify(auth)}}\n`;
  const end = before + (warnings.length === 0 ? 'null' : JSON.stringify(warnings)) + after;
  if (rest !== undefined) return { body: begin + joined(json), stream: Readable.from(withEnd(rest, end), { objectMode: false }) };
  return { body: typeof json === 'string' ? begin + json + end : [Buffer.from(begin), ...json, Buffer.from(end)] };
}

async function* withEnd(rest: AsyncIterable<string>, end: string): AsyncIterable<string> {
  yield* rest;
  yield end;
}

/** Replaces the request id in an encoded envelope; a body without one is returned unchanged. @param id - a UUID */
function withRequestId(body: string, id: string): string {
  const end = body.indexOf(beforeData);
  const begin = end - id.length;
  return begin < 0 || !body.startsWith(idMember, begin - idMember.length) ? body : body.slice(0, begin) + id + body.slice(end);
}

/**
 * Adds warnings to an encoded envelope; a body without one is returned unchanged. Neither `beforeWarnings` nor `beforeAuth` occurs within
 * a JSON string, which has no bare quotes.
 */
function withWarnings(body: string, added: readonly string[]): string {
  const at = body.lastIndexOf(beforeWarnings);
  if (at < 0 || added.length === 0) return body;
  const begin = at + beforeWarnings.length;
  const end = body.indexOf(beforeAuth, begin);
  const present = (JSON.parse(body.slice(begin, end)) as readonly string[] | null) ?? [];
  return body.slice(0, begin) + JSON.stringify([...new Set([...present, ...added])]) + body.slice(end);
}
