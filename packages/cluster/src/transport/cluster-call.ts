import type { NodeId } from '@transitd/raft-core';

/** A call of a member, whose certificate was checked. */
interface ClusterCall {
  readonly from: NodeId;
  /** Fingerprint of the certificate that the caller showed: it confirms that a renewed certificate has arrived. */
  readonly certificate: string;
  /** A value that only the two ends of the connection know. @see channelOf */
  readonly channel: () => Buffer;
  /** Call it when the caller has proved on this connection that it is unsealed. */
  readonly proved: () => void;
  /** The body of the request, at most 64 KiB. */
  readonly body: Buffer;
  readonly query: URLSearchParams;
}

/** A JSON document, or a stream of bytes. If a stream throws, the connection is closed, so that the caller sees that the end is missing. */
export type ClusterAnswer = { readonly status: number; readonly json: unknown } | { readonly stream: AsyncIterable<Uint8Array> };

/** Answers a call. Refusals that the API knows get the API's status; every other error is a fault of this node. */
export type ClusterHandler = (call: ClusterCall) => Promise<ClusterAnswer>;
