import { setTimeout as delay } from 'node:timers/promises';
import { type Etcd, EtcdError } from '../etcd.ts';

/** A call that may be repeated goes to the next member after this time. An etcd that is well answers within a few milliseconds. */
const slowMs = 300;

interface Endpoint {
  readonly etcd: Etcd;
  readonly index: number;
  /** Aborted when calls go to another endpoint: a watch then moves too. */
  left: AbortController;
}

/**
 * Returns an etcd that uses one of several connections at a time, each to another member of one etcd cluster. After a call without an
 * answer, the next call goes to the next member. A call that changes records is never repeated, because etcd may have begun it. A read, a
 * heartbeat or a call about a lease goes to the next member as well if the present one fails or is slow. The member that answers first is
 * used from then on, also by watches. All nodes send such calls at short intervals, so they leave a member that hangs long before a call to
 * it has timed out.
 */
export function anyEndpoint(connections: readonly [Etcd, ...Etcd[]]): Etcd {
  const endpoints = connections.map((etcd, index): Endpoint => ({ etcd, index, left: new AbortController() }));
  const first = endpoints[0] as Endpoint;
  let present = first;

  const after = ({ index }: Endpoint): Endpoint => endpoints[(index + 1) % endpoints.length] ?? first;

  function leave(endpoint: Endpoint): void {
    if (present !== endpoint || endpoints.length === 1) return;
    present = after(endpoint);
    endpoint.left.abort();
    endpoint.left = new AbortController();
  }

  async function through<Answer>(endpoint: Endpoint, send: (etcd: Etcd) => Promise<Answer>): Promise<Answer> {
    try {
      return await send(endpoint.etcd);
    } catch (error) {
      if (!isAnswer(error)) leave(endpoint);
      throw error;
    }
  }

  /** Sends a call that may be repeated, to each member at most once, and returns the first answer. */
  async function repeatable<Answer>(
    send: (etcd: Etcd) => Promise<Answer>,
    patienceMs = slowMs,
    used = present,
    others = endpoints.length - 1,
  ): Promise<Answer> {
    const call = through(used, send);
    if (others === 0 || (await isAnswered(call, patienceMs))) return call;
    let isOver = false;
    const next = repeatable(send, patienceMs, after(used), others - 1).then((answer) => {
      if (!isOver) leave(used);
      return answer;
    });
    try {
      return await Promise.any([call, next]);
    } catch (error) {
      const { errors } = error as AggregateError;
      throw errors.find(isAnswer) ?? errors[0];
    } finally {
      isOver = true;
    }
  }

  return {
    // A page of many rows may take long without a fault.
    range: (request) =>
      repeatable((etcd) => etcd.range(request), request.limit === undefined ? slowMs : Number.POSITIVE_INFINITY),
    txn: (txn) => (txn.mayRepeat ? repeatable((etcd) => etcd.txn(txn)) : through(present, (etcd) => etcd.txn(txn))),
    async *watch(request, signal) {
      const used = present;
      const left = used.left.signal;
      try {
        yield* used.etcd.watch(request, AbortSignal.any([signal, left]));
      } catch (error) {
        if (!isAnswer(error)) leave(used);
        throw error;
      }
      if (left.aborted && !signal.aborted)
        throw new EtcdError('unknown', 'a member of etcd does not answer, so another one is used');
    },
    // A second lease, which nobody uses, ends by itself.
    grantLease: (ttlSeconds) => repeatable((etcd) => etcd.grantLease(ttlSeconds)),
    keepAlive: (id) => repeatable((etcd) => etcd.keepAlive(id)),
    revokeLease: (id) => through(present, (etcd) => etcd.revokeLease(id)),
    close: () => {
      for (const { etcd } of endpoints) etcd.close();
    },
  };
}

const isAnswer = (error: unknown): boolean => error instanceof EtcdError && error.kind !== 'unknown';

/** Resolves after an answer, a failure, or this time; with true only after an answer, also a refusal. */
async function isAnswered(call: Promise<unknown>, withinMs: number): Promise<boolean> {
  const answered = call.then(
    () => true,
    (error: unknown) => isAnswer(error),
  );
  if (!Number.isFinite(withinMs)) return answered;
  const over = new AbortController();
  const isLate = delay(withinMs, false, { signal: over.signal }).catch(() => false);
  const isDone = await Promise.race([answered, isLate]);
  over.abort();
  return isDone;
}
