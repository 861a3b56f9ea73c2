import type { Readable } from 'node:stream';

/** A response as data, until {@link encode} makes its content when it is sent, wrapped or shown. */
export type Reply = ReplyHead & (EnvelopeContent | ErrorsContent | JsonContent | UnwrappedContent | RawContent);

interface ReplyHead {
  readonly status: number;
  /** Header names are capitalized as in `Content-Type`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The id in the envelope, if it is that of audit entries; otherwise the encoder makes one. */
  readonly requestId?: string;
  /** The new token that this response, or the response that it wraps, shows for the first time. */
  readonly issued?: { readonly token: string; readonly accessor: string };
  /** Called when this reply is sent. Another thread or node may answer the request instead; then it is not called. */
  readonly onSent?: () => void;
}

interface EnvelopeContent {
  readonly envelope: Envelope;
}

/** The members of a success response. */
export interface Envelope {
  readonly data: object | Rendered | null;
  /** Repeats the members of `data` at the top level, where older clients and the Go client look for them. */
  readonly showsDataTwice?: true;
  readonly auth: object | null;
  readonly wrapInfo: object | null;
  readonly warnings: readonly string[];
}

/** `{"errors":[...]}`, with warnings if there are any. The list is empty if there is no message, for example for a missing key. */
interface ErrorsContent {
  readonly errors: readonly string[];
  readonly warnings?: readonly string[];
}

/** One line of JSON without an envelope. */
interface JsonContent {
  readonly json: unknown;
}

/** The content of an earlier response, as it was encoded then. */
interface UnwrappedContent {
  readonly unwrapped: string;
  /** Added to the warnings of the earlier response. */
  readonly warnings?: readonly string[];
}

/** Content in its final form: JSON unless the headers have a content type. Without `body` and `stream` there is no content. */
interface RawContent {
  readonly body?: EncodedBody;
  /** Sent after `body`. If the stream fails, the connection is closed, so that the caller notices the truncation. */
  readonly stream?: Readable;
}

/** Text, or a long text in pieces of ASCII text or UTF-8 bytes: joining and encoding it at once would block the event loop. */
export type EncodedBody = string | readonly (string | Buffer)[];

/** JSON that is rendered before the response is encoded: that is faster, or the JSON is kept, or it is too long for memory. */
export class Rendered {
  /** Pieces are sent without a copy. */
  readonly json: EncodedBody;
  /** Read while the response is sent; `json` is then only the beginning. */
  readonly rest: AsyncIterable<string> | undefined;

  constructor(json: EncodedBody, rest?: AsyncIterable<string>) {
    this.json = json;
    this.rest = rest;
  }
}

/** Returns 200 with `data` in the envelope. */
export const dataReply = (data: Envelope['data'], warnings: readonly string[] = []): Reply => ({
  status: 200,
  envelope: { data, auth: null, wrapInfo: null, warnings },
});

/** Returns 200 with JSON without the envelope, as clients of some endpoints expect. */
export const plainReply = (json: object): Reply => ({ status: 200, json });

/** Returns 200 with `data` in the envelope and its members again at the top level. */
export const topLevelDataReply = (data: object): Reply => ({
  status: 200,
  envelope: { data, showsDataTwice: true, auth: null, wrapInfo: null, warnings: [] },
});

/** Returns 200 with `auth` in the envelope. @param issued - the token, if this reply is the first to show it */
export const authReply = (auth: object, warnings: readonly string[], issued?: Reply['issued']): Reply => ({
  ...(issued && { issued }),
  status: 200,
  envelope: { data: null, auth, wrapInfo: null, warnings },
});

/** Reply to a write without a result. */
export const noContentReply: Reply = { status: 204 };

/** Returns the reply to a write without a result: 204, or 200 if there are warnings. */
export const writtenReply = (warnings: readonly string[]): Reply =>
  warnings.length === 0 ? noContentReply : dataReply(null, warnings);

/**
 * Adds the warnings that an envelope does not have yet. Without an envelope there is no place for them; the warnings of a wrapped response
 * are in that response.
 */
export function replyWithWarnings(reply: Reply, warnings: readonly string[]): Reply {
  if ('unwrapped' in reply) return { ...reply, warnings: [...(reply.warnings ?? []), ...warnings] };
  if (!('envelope' in reply) || reply.envelope.wrapInfo !== null) return reply;
  return { ...reply, envelope: { ...reply.envelope, warnings: [...new Set([...reply.envelope.warnings, ...warnings])] } };
}

/** Returns whether a part of the content is read only while it is sent. */
export const isStreamed = (reply: Reply): boolean =>
  'envelope' in reply
    ? reply.envelope.data instanceof Rendered && reply.envelope.data.rest !== undefined
    : 'stream' in reply && reply.stream !== undefined;

/** Ends what a reply would have sent, because nobody reads it. */
export function discardReply(reply: Reply): void {
  if ('stream' in reply) reply.stream?.destroy();
}
