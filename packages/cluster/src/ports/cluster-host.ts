import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Config } from '@transitd/configuration';
import type { Logger, NodeObserver } from '@transitd/process';
import type { NodeId } from '@transitd/raft-core';
import type { MemberEvents } from './member-events.ts';

/** The node that runs the cluster code. */
export interface ClusterHost {
  readonly config: Config;
  readonly log: Logger;
  readonly observer: NodeObserver;
  /** The data directory. */
  readonly directory: string;
  /** Where clients reach this node; the URL is empty until its first listener accepts connections. */
  readonly api: { readonly url: string };
  readonly events: MemberEvents;
  /** Handles the requests that other nodes forward to this one. */
  readonly forwarded: ForwardedRequests;
  /** The process must end: an invariant was violated, or the disk failed or lacks entries that this node acknowledged. */
  onFatal(error: Error): void;
}

/** Whether this node is the active one, and whether it has its keys. Both change at any time. */
export interface NodeRole {
  /** This node leads, has applied an entry of its term, and serves. */
  readonly isActive: boolean;
  /** The barrier is unsealed and the services are loaded. */
  readonly isUnsealed: boolean;
}

type ForwardedHandler = (req: IncomingMessage, res: ServerResponse, from: NodeId) => void;

/**
 * The handler of requests that other nodes forward to this one. The server sets it when it starts, before or after the cluster port opens.
 */
export class ForwardedRequests {
  #handler: ForwardedHandler = (_req, res) => void res.destroy();

  serve(handler: ForwardedHandler): void {
    this.#handler = handler;
  }

  handle(...request: Parameters<ForwardedHandler>): void {
    this.#handler(...request);
  }
}

/** Makes this node's reports, as JSON; other members ask for them. */
export interface ReportSource {
  /** On this node itself. */
  report(): Promise<object>;
  /** On the uses of keys that this node has counted, for the active node. @throws ZodError for an unknown question */
  usage(question: unknown): Promise<object>;
  /** Records the uses of keys that all nodes have counted, if this node is the active one. @throws StoreError */
  recordUsage(): Promise<unknown>;
}
