import type { SecureContextOptions } from 'node:tls';
import { Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect';
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import type { Etcd, EtcdEvent, EtcdOperationAnswer, EtcdRow, EtcdTxn, EtcdWatchMessage } from '../etcd.ts';
import { answerBytesMax, EtcdError, type EtcdErrorKind } from '../etcd.ts';
import { Auth, type Event, type KeyValue, KV, Lease, type ResponseOp, Watch, type WatchResponse } from '../wire/etcd_pb.ts';
import { rangeRequest, txnRequest, watchRequest } from '../wire/requests.ts';

export interface EtcdConnection {
  /** For example `https://etcd-1.example:2379`. */
  readonly endpoint: string;
  /** Of an endpoint with `https`. With `cert` and `key` etcd knows this node by its certificate. */
  readonly tls?: Pick<SecureContextOptions, 'ca' | 'cert' | 'key'>;
  readonly user?: { readonly name: string; readonly password: string };
  /** Longest wait for an answer. */
  readonly timeoutMs?: number;
  /** While calls are open: a watch would otherwise wait forever on a connection that died without a word. */
  readonly pings?: Pings;
}

export interface Pings {
  readonly pingIntervalMs: number;
  /** Longest wait for the answer to a ping. */
  readonly pingTimeoutMs: number;
}

/** etcd closes a connection with pings more often than every 5 seconds. */
const usualPings: Pings = { pingIntervalMs: 5500, pingTimeoutMs: 5000 };
/** In MB. Above it, Node resets streams whose requests etcd may have carried out; its default of 10 is too low for a few large commits. */
const maxSessionMemory = 512;

/** Opens a connection to one endpoint when it is first needed, and again after it broke. */
export function connectEtcd({ endpoint, tls, user, timeoutMs = 10_000, pings = usualPings }: EtcdConnection): Etcd {
  let token: string | undefined;
  const closing = new AbortController();
  const withToken: Interceptor = (next) => (request) => {
    if (token !== undefined) request.header.set('token', token);
    return next(request);
  };
  const sessions = new Http2SessionManager(endpoint, pings, { ...tls, maxSessionMemory });
  const options = { baseUrl: endpoint, httpVersion: '2' as const, sessionManager: sessions };
  const transport = createGrpcTransport({ ...options, interceptors: [withToken] });
  const kv = createClient(KV, createGrpcTransport({ ...options, interceptors: [withToken], readMaxBytes: answerBytesMax }));
  // Without that limit: etcd splits messages of a watch itself, at the --max-request-bytes of its operator.
  const watch = createClient(Watch, transport);
  const lease = createClient(Lease, transport);
  const auth = createClient(Auth, createGrpcTransport(options));
  const call = (): { timeoutMs: number; signal: AbortSignal } => ({ timeoutMs, signal: closing.signal });

  /** Sends a call with a token. etcd refuses a call with an invalid token before it begins, so the call is sent again with a new token. */
  async function authorized<Answer>(send: () => Promise<Answer>): Promise<Answer> {
    try {
      if (user !== undefined && token === undefined) await authenticate(user);
      return await send();
    } catch (error) {
      if (user === undefined || !isTokenRefusal(error)) throw etcdError(error);
    }
    try {
      await authenticate(user);
      return await send();
    } catch (error) {
      throw etcdError(error);
    }
  }

  async function authenticate(by: { readonly name: string; readonly password: string }): Promise<void> {
    token = (await auth.authenticate(by, call())).token;
  }

  return {
    range: async (request) => {
      const answer = await authorized(() => kv.range(rangeRequest(request), call())).catch(rejectRange);
      return { revision: Number(answer.header?.revision ?? 0n), rows: answer.kvs.map(rowOf), more: answer.more };
    },
    txn: async (txn: EtcdTxn) => {
      const { header, succeeded, responses } = await authorized(() => kv.txn(txnRequest(txn), call()));
      return { revision: Number(header?.revision ?? 0n), succeeded, answers: responses.map(operationAnswer) };
    },
    async *watch(request, signal) {
      const ends = AbortSignal.any([signal, closing.signal]);
      const requests = heldOpen(watchRequest(request), ends);
      try {
        if (user !== undefined && token === undefined) await authenticate(user);
        for await (const response of watch.watch(requests, { signal: ends })) yield* messagesOf(response);
      } catch (error) {
        if (ends.aborted) return;
        if (isTokenRefusal(error)) token = undefined;
        throw etcdError(error);
      }
      if (!ends.aborted) throw new EtcdError('unknown', 'etcd has ended the watch');
    },
    grantLease: async (ttlSeconds) => {
      const answer = await authorized(() => lease.leaseGrant({ TTL: BigInt(ttlSeconds) }, call()));
      return { id: answer.ID, ttlSeconds: Number(answer.TTL) };
    },
    keepAlive: (id) =>
      authorized(async () => {
        for await (const { TTL } of lease.leaseKeepAlive(once({ ID: id }), call())) return Number(TTL);
        throw new ConnectError('etcd did not answer a keep-alive', Code.Unavailable);
      }),
    revokeLease: async (id) => {
      await authorized(() => lease.leaseRevoke({ ID: id }, call()));
    },
    close: () => {
      closing.abort();
      // With a reason, so that a call that waits for a connection opens no other one.
      sessions.abort(new ConnectError('this client of etcd is closed', Code.Unavailable));
    },
  };
}

async function* once<Message>(message: Message): AsyncGenerator<Message> {
  yield message;
}

/** Keeps the stream of requests open until `signal` aborts: etcd ends a watch when its client closes this stream. */
async function* heldOpen<Message>(message: Message, signal: AbortSignal): AsyncGenerator<Message> {
  yield message;
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();

const rowOf = ({ key, value, createRevision, modRevision, version }: KeyValue): EtcdRow => ({
  key: text(key),
  value,
  createRevision: Number(createRevision),
  modRevision: Number(modRevision),
  version: Number(version),
});

function operationAnswer({ response }: ResponseOp): EtcdOperationAnswer {
  if (response.case === 'responseRange') return { rows: response.value.kvs.map(rowOf) };
  return response.case === 'responseTxn' ? { txn: { succeeded: response.value.succeeded } } : {};
}

const deleteEvent = 1;

function eventsOf({ kv, type }: Event): EtcdEvent[] {
  return kv === undefined ? [] : [{ deleted: type === deleteEvent, row: rowOf(kv) }];
}

function* messagesOf(response: WatchResponse): Generator<EtcdWatchMessage> {
  if (response.created) yield { kind: 'created', revision: Number(response.header?.revision ?? 0n) };
  if (response.events.length > 0 || response.fragment)
    yield { kind: 'events', fragment: response.fragment, events: response.events.flatMap(eventsOf) };
  if (response.canceled)
    yield { kind: 'canceled', compactRevision: Number(response.compactRevision), reason: response.cancelReason };
}

/** Codes with which etcd refuses a call before it begins. With any other code, etcd may have begun the call. */
const refusals: ReadonlySet<Code> = new Set([
  Code.InvalidArgument,
  Code.NotFound,
  Code.AlreadyExists,
  Code.PermissionDenied,
  Code.ResourceExhausted,
  Code.FailedPrecondition,
  Code.OutOfRange,
  Code.Unimplemented,
  Code.Unauthenticated,
]);

/**
 * The texts of etcd's own answers begin like this. The gRPC client gives some of the codes above to a stream that HTTP/2 reset, and then
 * etcd may have begun the call.
 */
const answers = /^(etcdserver|grpc|auth): /;
/** etcd carries out the write that exceeds its quota, and then answers with this text as if it had refused the write. */
const overQuota = /space exceeded/;

/** Refusals of etcd after which a new token helps. Each change of users or roles makes the present tokens of type `jwt` old. */
const tokenRefusals =
  /auth token|authentication token|user name is empty|revision of auth store is old|revision in header is old/;

const isTokenRefusal = (error: unknown): boolean =>
  error instanceof ConnectError && (error.code === Code.Unauthenticated || tokenRefusals.test(error.rawMessage));

function etcdError(error: unknown): EtcdError {
  if (!(error instanceof ConnectError)) return new EtcdError('unknown', String(error), { cause: error });
  return new EtcdError(kindOf(error), error.rawMessage, { cause: error });
}

/** The client ends a call as soon as it knows that the answer is too long. For a transaction this is an unknown outcome. */
function rejectRange(error: EtcdError): never {
  const { cause } = error;
  if (cause instanceof ConnectError && cause.code === Code.ResourceExhausted && cause.rawMessage.includes('readMaxBytes'))
    throw new EtcdError('too_large', `the answer is longer than ${answerBytesMax} bytes`, { cause });
  throw error;
}

function kindOf({ code, rawMessage }: ConnectError): EtcdErrorKind {
  if (code === Code.OutOfRange && rawMessage.includes('revision')) return 'compacted';
  return refusals.has(code) && answers.test(rawMessage) && !overQuota.test(rawMessage) ? 'refused' : 'unknown';
}
