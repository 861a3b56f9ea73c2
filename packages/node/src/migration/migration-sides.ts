import type { FeatureLevel } from '@transitd/storage-fsm';

/** Encodes records as a backup does, the same bytes on every call. */
export type OpenRecords = () => AsyncIterable<Uint8Array>;

/** The records of a cluster whose nodes are stopped. */
export interface MigrationSource {
  /** Of the newest commit: it shows which of several data directories is the newest. */
  readonly position: { readonly term: number; readonly index: number };
  readonly stream: OpenRecords;
}

/** The engine to which a cluster moves. */
export interface MigrationTarget {
  /** Path prefixes of the records that the target does not get. */
  readonly drops: readonly string[];
  /** Writes nothing. @throws StartError unless the target can take a cluster */
  requireEmpty(): Promise<void>;
  /** Writes the records, which take effect by one last write. */
  fill(parts: {
    readonly open: OpenRecords;
    readonly level: FeatureLevel;
    readonly attempt: string;
    readonly onProgress: (records: number) => void;
  }): Promise<void>;
  /** Reads the records back, as a starting node would. */
  read<T>(check: (open: OpenRecords) => Promise<T>): Promise<T>;
}
