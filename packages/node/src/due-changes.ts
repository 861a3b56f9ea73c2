import { type AuditWriter, Exchange } from '@transitd/audit';
import { type Logger, reasonOf } from '@transitd/process';
import type { DueChange } from '@transitd/transit-engine';
import { accessorOf, type Mount } from './mounts/mounts.ts';
import type { Services } from './services.ts';

/** The only member of the entries' data. A request cannot have it. */
const schema = { type: 'object', properties: { automatic: { type: 'boolean' } } } as const;

/** Where a node records what it does without a request. */
export interface Journal {
  readonly log: Logger;
  readonly audit: AuditWriter;
}

interface OwnChange {
  readonly verb: 'POST' | 'DELETE';
  /** The path below that of the key. */
  readonly below: string;
  /** The member of the answer that has the resulting version; absent for an answer without content. */
  readonly member?: string;
  /** The line of the log. */
  readonly done: string;
}

/** The operations on a key that a node carries out by itself. */
const changes = {
  rotate: { verb: 'POST', below: '/rotate', member: 'latest_version', done: 'rotated a key that was due' },
  trim: {
    verb: 'POST',
    below: '/trim',
    member: 'min_available_version',
    done: 'deleted versions of a key that were due by trim_after',
  },
  delete: { verb: 'DELETE', below: '', done: 'deleted a key whose scheduled deletion was due' },
} as const satisfies Readonly<Record<string, OwnChange>>;
export type OwnOperation = keyof typeof changes;

/**
 * Logs and audits changes that the keys of a mount are due for. The entries are those of a request for the operation, without a caller and
 * with `automatic` in the data. As for requests, nothing is done unless the request entry is written.
 */
export const recordedChange =
  (operation: OwnOperation, mount: Mount, { auditKey }: Pick<Services, 'auditKey'>, { log, audit }: Journal): DueChange =>
  async (name, change) => {
    const { verb, below, member, done }: OwnChange = changes[operation];
    const exchange = new Exchange({
      devices: audit,
      auditKey,
      mount: async () => ({ point: `${mount.path}/`, type: mount.type, class: 'secret', accessor: accessorOf(mount) }),
      verb,
      path: `${mount.path}/keys/${name}${below}`,
      address: '',
      port: undefined,
      forwardedFrom: undefined,
      schema,
    });
    await exchange.begin({ automatic: true });
    const version = await change().catch(async (error: unknown) => {
      await exchange.end({ status: 500, errors: [reasonOf(error)] });
      throw error;
    });
    if (version !== undefined) log.info({ mount: mount.path, key: name, version }, done);
    await exchange.end(
      version === undefined
        ? { status: 409, errors: ['the key is not due any more'] }
        : member === undefined
          ? { status: 204 }
          : { status: 200, json: { [member]: version } },
    );
    return version;
  };
