import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { answerTo, bytesOf, nodeHttp } from '@transitd/process';
import { ClusterError } from '../refusals/cluster-error.ts';
import { untrustedReason } from '../refusals/untrusted-reason.ts';
import type { Send } from './join-client.ts';

interface JoinHttpOptions {
  /**
   * Certificate (PEM) of the authority to trust for https addresses, instead of the system's authorities. A join is safe whether or not it
   * is given.
   */
  readonly ca?: string;
  /** Aborts requests in flight, for example when the node stops. */
  readonly signal?: AbortSignal;
  /** Deadline for one message and its answer; the leader has 10 s for a forwarded one. */
  readonly deadlineMs?: number;
}

const deadlineDefaultMs = 15_000;
/** Maximum size of an answer. The longest membership has 40 KiB. */
const answerBytesMax = 128 * 1024;

/** Sends by HTTP or HTTPS, on a new connection each time, and follows no redirect. */
export const sendByHttp =
  (options: JoinHttpOptions = {}): Send =>
  (address, path, message) =>
    exchange(address, path, JSON.stringify(message), options);

async function exchange(address: string, path: string, body: string, options: JoinHttpOptions): Promise<unknown> {
  const { signal, deadlineMs = deadlineDefaultMs } = options;
  const deadline = AbortSignal.timeout(deadlineMs);
  let answer: LeaderAnswer;
  try {
    const either = AbortSignal.any([deadline, ...(signal === undefined ? [] : [signal])]);
    answer = await post(new URL(path, address), body, { ...options, signal: either });
  } catch (error) {
    if (error instanceof ClusterError) throw error;
    const reason = deadline.aborted ? `no answer within ${deadlineMs / 1000} s` : signal?.aborted ? 'stopped' : reasonOf(error);
    throw new ClusterError('leader_unavailable', reason, { cause: error });
  }
  return messageIn(answer);
}

interface LeaderAnswer {
  readonly status: number;
  readonly body: Buffer;
}

function post(url: URL, body: string, { ca, signal }: JoinHttpOptions & { readonly signal: AbortSignal }): Promise<LeaderAnswer> {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const options = { method: 'POST', headers, signal, agent: false } as const;
  const outgoing =
    url.protocol === 'https:'
      ? httpsRequest(url, { ...options, ...(ca !== undefined && { ca }) })
      : nodeHttp().request(url, options);
  const answer = answerTo(outgoing, signal, async (response: IncomingMessage) => ({
    status: response.statusCode ?? 0,
    body: await bytesOf(response, answerBytesMax, tooLong),
  }));
  outgoing.end(body);
  return answer;
}

const tooLong = (): ClusterError => new ClusterError('leader_untrusted', `its answer has more than ${answerBytesMax} bytes`);

/** Whether a later attempt may succeed: no leader, sealed, too many requests. */
const isTemporary = (status: number): boolean => status >= 500 || status === 408 || status === 429;

function messageIn({ status, body }: LeaderAnswer): unknown {
  const json = jsonIn(body);
  if (status === 200) {
    if (json === undefined) throw new ClusterError('leader_untrusted', 'its answer is not JSON');
    return json;
  }
  const reason = untrustedReason(json);
  const answered = status >= 300 && status < 400 ? 'a redirect, which is not followed' : `status ${status}`;
  const text = `it answered with ${answered}${reason === undefined ? '' : `: ${reason}`}`;
  throw new ClusterError(isTemporary(status) ? 'leader_unavailable' : 'leader_refused', text);
}

function jsonIn(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
}

/**
 * Returns the reason of a failed connection: the error's message, or its code if the message is empty, as after attempts at several
 * addresses.
 */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'it cannot be reached';
  const { code } = error as NodeJS.ErrnoException;
  return error.message === '' ? (code ?? 'it cannot be reached') : error.message;
}
