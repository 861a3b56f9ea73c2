// Requests in the form of the generated messages.
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type { EtcdOperation, EtcdRangeRequest, EtcdTxn, EtcdWatchRequest } from '../etcd.ts';
import {
  type RangeRequestSchema,
  type RequestOpSchema,
  type TxnRequestSchema,
  WatchCreateRequestSchema,
  type WatchRequest,
  WatchRequestSchema,
} from './etcd_pb.ts';

const bytes = (key: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(key));
const own = (value: Uint8Array): Uint8Array<ArrayBuffer> => new Uint8Array(value);

export const rangeRequest = ({ key, end, limit, revision }: EtcdRangeRequest): MessageInitShape<typeof RangeRequestSchema> => ({
  key: bytes(key),
  ...(end !== undefined && { rangeEnd: bytes(end) }),
  limit: BigInt(limit ?? 0),
  revision: BigInt(revision ?? 0),
});

/** Fragments keep a message below the limit of gRPC however much one revision has changed. */
export function watchRequest({ key, end, startRevision }: EtcdWatchRequest): WatchRequest {
  const range = { key: bytes(key), rangeEnd: bytes(end) };
  const value = create(WatchCreateRequestSchema, { ...range, startRevision: BigInt(startRevision), fragment: true });
  return create(WatchRequestSchema, { requestUnion: { case: 'createRequest', value } });
}

const modRevisionTarget = 2;

export const txnRequest = ({ compares, success, failure }: EtcdTxn): MessageInitShape<typeof TxnRequestSchema> => ({
  compare: compares.map(({ key, modRevision }) => ({
    target: modRevisionTarget,
    key: bytes(key),
    targetUnion: { case: 'modRevision', value: BigInt(modRevision) },
  })),
  success: success.map(requestOp),
  failure: failure.map(requestOp),
});

function requestOp(operation: EtcdOperation): MessageInitShape<typeof RequestOpSchema> {
  switch (operation.kind) {
    case 'range':
      return { request: { case: 'requestRange', value: rangeRequest({ key: operation.key }) } };
    case 'put': {
      const { key, value, lease } = operation;
      return { request: { case: 'requestPut', value: { key: bytes(key), value: own(value), lease: lease ?? 0n } } };
    }
    case 'delete': {
      const { key, end } = operation;
      const value = { key: bytes(key), ...(end !== undefined && { rangeEnd: bytes(end) }) };
      return { request: { case: 'requestDeleteRange', value } };
    }
    case 'txn':
      return { request: { case: 'requestTxn', value: txnRequest(operation.txn) } };
  }
}
