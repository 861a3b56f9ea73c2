import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { RequestOptions } from 'node:https';
import { answerTo, bytesOf, nodeHttp } from '@transitd/process';

export interface ExchangeOptions extends Pick<RequestOptions, 'method' | 'headers' | 'ca' | 'cert' | 'key' | 'servername'> {
  readonly rejectUnauthorized?: boolean;
  readonly body?: string | Uint8Array;
  /** For the request and its whole answer. */
  readonly deadlineMs: number;
  /** Aborts the exchange before its deadline. */
  readonly signal?: AbortSignal | undefined;
  /** Maximum size of the body of the answer. */
  readonly bytesMax: number;
  /** Whether the answer is returned as text instead of JSON. Secrets in a text cannot be wiped. */
  readonly isText?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Empty unless it was asked for. */
  readonly text: string;
  /** Undefined if the body is not JSON in UTF-8, or text was asked for. */
  readonly json: unknown;
}

/** The answer is longer than its reader allows. */
export class AnswerTooLong extends Error {}

/**
 * Sends a request by HTTP or HTTPS on a new connection, and resolves with its answer, whatever the status is. Follows no redirect.
 * @throws AnswerTooLong; Error whose message says why no answer arrived
 */
export async function exchange(
  url: URL,
  { body, deadlineMs, signal, bytesMax, isText = false, ...options }: ExchangeOptions,
): Promise<Answer> {
  const deadline = AbortSignal.timeout(deadlineMs);
  const either = signal === undefined ? deadline : AbortSignal.any([deadline, signal]);
  try {
    const { request } = url.protocol === 'https:' ? process.getBuiltinModule('node:https') : nodeHttp();
    const outgoing = request(url, { ...options, signal: either, agent: false });
    const answer = answerTo(outgoing, either, async (response: IncomingMessage) => {
      const bytes = await bytesOf(response, bytesMax, () => new AnswerTooLong(`its answer has more than ${bytesMax} bytes`));
      const [text, json] = isText ? [bytes.toString('utf8'), undefined] : ['', jsonIn(bytes)];
      bytes.fill(0); // it may contain a key
      return { status: response.statusCode ?? 0, headers: response.headers, text, json };
    });
    outgoing.end(body);
    return await answer;
  } catch (error) {
    if (deadline.aborted) throw new Error(`no answer within ${deadlineMs / 1000} s`, { cause: error });
    // The error of failed attempts at several addresses has no message.
    const { message, code = 'it cannot be reached' } = error as NodeJS.ErrnoException;
    throw message === '' ? new Error(code, { cause: error }) : error;
  }
}

function jsonIn(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}
