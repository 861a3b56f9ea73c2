import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { reasonOf } from '@transitd/process';
import { LogDamage } from '@transitd/raft-core';
import { syncDirectory } from '@transitd/storage-fsm';
import type { ClusterHost } from '../ports/cluster-host.ts';

/** Name of the file that records that this node was removed from the cluster. */
export const removalFile = 'removed';
/**
 * Name of the file that records that a peer knows a later incarnation of this node. This disk may then lack entries that the node
 * acknowledged.
 */
export const overtakenFile = 'overtaken';

export const staleDataDirectory =
  'a copy of what another process runs on, or was rolled back to an earlier state. Remove this node from the cluster and let it join again with an empty data_dir.';

/** How long recording an exclusion may take. After that the process ends without the record. */
const exclusionMsMax = 2_000;

/**
 * Records in the data directory why this node must not take part in the cluster, for all later starts. @throws errors of the file system
 */
export async function recordExclusion(directory: string, name: string, facts: object): Promise<void> {
  const file = await open(join(directory, name), 'w', 0o600);
  try {
    await file.writeFile(`${JSON.stringify({ format: 1, ...facts })}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await syncDirectory(directory);
}

/** Ends the process of a node that cannot run on, and if its disk may lack acknowledged entries, excludes it from later starts. */
export class Exclusion {
  readonly #host: ClusterHost;
  #isStopping = false;

  constructor(host: ClusterHost) {
    this.#host = host;
  }

  /**
   * Handles a storage failure. Damage of the log is recorded, because a later start may not notice that acknowledged entries are missing.
   */
  storageFailed(error: Error): void {
    if (error instanceof LogDamage) void this.exclude(error);
    else if (!this.#isStopping) this.#host.onFatal(error); // otherwise the process ends once the exclusion is recorded
  }

  /**
   * Ends the process, and records that later starts on this data directory must fail. Without the record, each restart would raise the
   * incarnation's number, until it was higher than the number that the peers know.
   */
  async exclude(error: Error): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    const { directory, log } = this.#host;
    const recorded = recordExclusion(directory, overtakenFile, { reason: error.message }).catch((cause: unknown) =>
      log.error({ reason: reasonOf(cause) }, 'could not record that data_dir is unusable: do not start this node again with it'),
    );
    await Promise.race([recorded, pause(exclusionMsMax)]); // a stalled disk must not keep the process alive
    this.#host.onFatal(error);
  }
}
