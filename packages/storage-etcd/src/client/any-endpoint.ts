import { type Etcd, EtcdError } from '../etcd.ts';

/**
 * Returns an etcd that uses one of several connections at a time, each to another member of one etcd cluster. After a call without an
 * answer the next call goes to the next member. Only a read is repeated, once at each member: of any other call etcd may have seen it.
 */
export function anyEndpoint(connections: readonly [Etcd, ...Etcd[]]): Etcd {
  let present = 0;

  async function through<Answer>(send: (etcd: Etcd) => Promise<Answer>): Promise<Answer> {
    const used = present;
    try {
      return await send(connections[used] ?? connections[0]);
    } catch (error) {
      leave(used, error);
      throw error;
    }
  }

  async function read<Answer>(send: (etcd: Etcd) => Promise<Answer>): Promise<Answer> {
    for (let tries = 1; ; tries++) {
      try {
        return await through(send);
      } catch (error) {
        if (isAnswer(error) || tries === connections.length) throw error;
      }
    }
  }

  function leave(used: number, error: unknown): void {
    if (!isAnswer(error) && present === used) present = (used + 1) % connections.length;
  }

  return {
    range: (request) => read((etcd) => etcd.range(request)),
    txn: (txn) => through((etcd) => etcd.txn(txn)),
    async *watch(request, signal) {
      const used = present;
      try {
        yield* (connections[used] ?? connections[0]).watch(request, signal);
      } catch (error) {
        leave(used, error);
        throw error;
      }
    },
    grantLease: (ttlSeconds) => through((etcd) => etcd.grantLease(ttlSeconds)),
    keepAlive: (id) => through((etcd) => etcd.keepAlive(id)),
    revokeLease: (id) => through((etcd) => etcd.revokeLease(id)),
    close: () => {
      for (const etcd of connections) etcd.close();
    },
  };
}

const isAnswer = (error: unknown): boolean => error instanceof EtcdError && error.kind !== 'unknown';
