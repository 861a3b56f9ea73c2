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

/** The state read from the disk of a stopped node, checked from its first byte to its last. */
export interface Recovery {
  readonly state: {
    readonly nodeId: number;
    readonly clusterId: string;
    /** Of the newest entry; undefined without the log. */
    readonly term: number | undefined;
    readonly index: number;
    readonly commitIndex: number;
    readonly storedIndex: number;
    /** Undefined without the log. */
    readonly conf: object | undefined;
  };
  /** `node_id` of the node's configuration, as the membership list has it. */
  readonly name: string | undefined;
  /** The newest configuration on the disk names the node, and no other node has told it that it was removed. */
  readonly isMember: boolean;
  /** Another node has told it that its disk was set back, or is a copy (decision 72). */
  readonly isOvertaken: boolean;
  readonly records: number;
  /** The archive that `GET sys/storage/raft/snapshot` returns, without a proof: the root key is not on the disk. */
  readonly archive: () => Readable;
}

/** The commands that run in this process instead of asking a server: the program passes them in, and each loads its code when it runs. */
export interface LocalWork {
  /** Runs a node until it is asked to stop; resolves with the exit code. @throws StartError */
  runServer(options: ServerOptions): Promise<number>;
  /** Reads the data directory of a stopped node for `use`. @throws StartError, StorageDamaged, StorageFailed; what `use` throws */
  recover(
    directory: string,
    options: { readonly withoutLog: boolean },
    use: (recovery: Recovery) => Promise<void>,
  ): Promise<void>;
}
