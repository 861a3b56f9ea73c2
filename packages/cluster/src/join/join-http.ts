import { type Answer, AnswerTooLong, exchange } from '@transitd/http';
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
  ({ signal, deadlineMs = deadlineDefaultMs, ...trust }: JoinHttpOptions = {}): Send =>
  async (address, path, message) => {
    const body = JSON.stringify(message);
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const options = { method: 'POST', headers, body, deadlineMs, signal, bytesMax: answerBytesMax, ...trust };
    let answer: Answer;
    try {
      answer = await exchange(new URL(path, address), options);
    } catch (error) {
      const { message: reason } = error as Error;
      if (error instanceof AnswerTooLong) throw new ClusterError('leader_untrusted', reason);
      throw new ClusterError('leader_unavailable', signal?.aborted ? 'stopped' : reason, { cause: error });
    }
    const { status, json } = answer;
    if (status !== 200) throw refusalOf(status, json);
    if (json === undefined) throw new ClusterError('leader_untrusted', 'its answer is not JSON');
    return json;
  };

function refusalOf(status: number, json: unknown): ClusterError {
  const reason = untrustedReason(json);
  const answered = status >= 300 && status < 400 ? 'a redirect, which is not followed' : `status ${status}`;
  const text = `it answered with ${answered}${reason === undefined ? '' : `: ${reason}`}`;
  return new ClusterError(isTemporary(status) ? 'leader_unavailable' : 'leader_refused', text);
}

/** Whether a later attempt may succeed: no leader, sealed, too many requests. */
const isTemporary = (status: number): boolean => status >= 500 || status === 408 || status === 429;
