import type { Readable } from 'node:stream';

/** Options of `transitd server`. */
export interface ServerOptions {
  readonly config?: string;
  readonly dev?: boolean;
  readonly devRootTokenId?: string;
  readonly devAllowRemote?: boolean;
  readonly dataDir?: string;
  readonly listen?: string;
}

/** The state read from the disk of a stopped node, with all checksums verified. */
export interface Recovery {
  readonly state: {
    readonly nodeId: number;
    readonly clusterId: string;
    /** Term of the newest entry; undefined if the log was not read. */
    readonly term: number | undefined;
    readonly index: number;
    readonly commitIndex: number;
    readonly storedIndex: number;
    /** Raft configuration; undefined if the log was not read. */
    readonly conf: object | undefined;
    /** Why the replication record could not be read; undefined if it could. */
    readonly unreadableReplication: string | undefined;
  };
  /** `node_id` of the node in the membership list. */
  readonly name: string | undefined;
  /** Whether the newest configuration on the disk contains the node, and no other node has reported its removal. */
  readonly isMember: boolean;
  /** Whether another node has reported that the disk was rolled back or copied (decision 72). */
  readonly isOvertaken: boolean;
  readonly records: number;
  /** The archive of `GET sys/storage/raft/snapshot`, but without a valid proof: the root key is not on the disk. */
  readonly archive: () => Readable;
}

/** The records that a migration has moved, or would move. */
export interface StorageMigration {
  readonly records: number;
  /** Sum over all records, hexadecimal. */
  readonly digest: string;
  readonly level: number;
  /** Of the newest commit of the source. */
  readonly term: number;
  readonly index: number;
}

/** The commands that run in this process instead of calling a server. The program passes them in; each loads its code when it runs. */
export interface LocalWork {
  /** Runs a node until it receives a stop signal; resolves with the exit code. @throws StartError */
  runServer(options: ServerOptions): Promise<number>;
  /**
   * Reads the data directory of a stopped node and passes the state to `use`.
   * @throws StartError, StorageDamaged, StorageFailed; errors of `use`
   */
  recover(
    directory: string,
    options: { readonly withoutLog: boolean },
    use: (recovery: Recovery) => Promise<void>,
  ): Promise<void>;
  /**
   * Moves a stopped cluster to the other engine. Both files are configurations of nodes.
   * @throws StartError, StorageDamaged, StorageFailed
   */
  migrateStorage(
    files: { readonly from: string; readonly to: string },
    options: { readonly dryRun: boolean; readonly onProgress: (records: number, of: number) => void },
  ): Promise<StorageMigration>;
}
