import { type AuditWriter, Exchange } from '@transitd/audit';
import { type Logger, reasonOf } from '@transitd/process';
import type { DueRotation } from '@transitd/transit-engine';
import { accessorOf, type Mount } from './mounts/mounts.ts';
import type { Services } from './services.ts';

/** The only member of the entries' data. A request cannot have it. */
const schema = { type: 'object', properties: { automatic: { type: 'boolean' } } } as const;

/** Where a node records what it does without a request. */
export interface Journal {
  readonly log: Logger;
  readonly audit: AuditWriter;
}

/**
 * Logs and audits automatic rotations of the keys of a mount. The entries are those of a request to rotate the key, without a caller and
 * with `automatic` in the data. As for requests, nothing is done unless the request entry is written.
 */
export const recordedRotation =
  (mount: Mount, { auditKey }: Pick<Services, 'auditKey'>, { log, audit }: Journal): DueRotation =>
  async (name, rotate) => {
    const exchange = new Exchange({
      devices: audit,
      auditKey,
      mount: async () => ({ point: `${mount.path}/`, type: mount.type, class: 'secret', accessor: accessorOf(mount) }),
      verb: 'POST',
      path: `${mount.path}/keys/${name}/rotate`,
      address: '',
      port: undefined,
      forwardedFrom: undefined,
      schema,
    });
    await exchange.begin({ automatic: true });
    const version = await rotate().catch(async (error: unknown) => {
      await exchange.end({ status: 500, errors: [reasonOf(error)] });
      throw error;
    });
    if (version !== undefined) log.info({ mount: mount.path, key: name, version }, 'rotated a key that was due');
    await exchange.end(
      version === undefined
        ? { status: 409, errors: ['the key is not due any more'] }
        : { status: 200, json: { latest_version: version } },
    );
    return version;
  };
