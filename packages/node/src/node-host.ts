import type { MethodType } from '@transitd/access';
import type { AuditWriter } from '@transitd/audit';
import type { ForwardedRequests } from '@transitd/cluster';
import type { Config } from '@transitd/configuration';
import type { Logger, NodeObserver } from '@transitd/process';
import type { OpenedSeal } from '@transitd/seals';
import type { ApiAddress } from './api-address.ts';
import type { NodeClock } from './clock/node-clock.ts';
import type { ShareRetention } from './join/share-retention.ts';
import type { DataDisk } from './reports/data-disk.ts';
import type { WorkFigures } from './reports/node-report.ts';
import type { DataDirectory } from './storage/data-directory.ts';
import type { UsageLedger } from './usage/usage-ledger.ts';

/** A node, whether it belongs to a cluster or not. All of it exists from its start to its end. */
export interface NodeHost {
  readonly config: Config;
  /** The seals in the configuration, and their providers. */
  readonly opened: OpenedSeal;
  readonly log: Logger;
  readonly audit: AuditWriter;
  readonly clock: NodeClock;
  readonly observer: NodeObserver;
  readonly authMethods: readonly MethodType[];
  readonly directory: DataDirectory;
  readonly disk: DataDisk;
  readonly api: ApiAddress;
  readonly forwarded: ForwardedRequests;
  readonly retention: ShareRetention;
  /** The uses of keys on this node. */
  readonly usage: UsageLedger;
  /** Returns the work of this node, for its report on itself. */
  work?(): Promise<WorkFigures>;
  /** The process must end. */
  onFatal(error: Error): void;
}
