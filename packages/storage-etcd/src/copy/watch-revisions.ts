import type { EtcdEvent } from '../etcd.ts';

/** All events of one revision, in their order. */
export interface RevisionEvents {
  readonly revision: number;
  readonly events: readonly EtcdEvent[];
}

interface EventsMessage {
  readonly fragment: boolean;
  readonly events: readonly EtcdEvent[];
}

/**
 * Makes whole revisions from the messages of one watch stream. etcd splits a large message into fragments anywhere, so events count only
 * when the last fragment has arrived. Fragments of a stream that ended are dropped with this object; the next stream begins after
 * the last whole revision.
 */
export class WatchRevisions {
  #last: number;
  #pending: EtcdEvent[] = [];

  /** @param startRevision - the first revision that the watch asked for */
  constructor(startRevision: number) {
    this.#last = startRevision - 1;
  }

  /** Returns the revisions that this message completes, or `disordered` if they do not ascend: then nothing of the stream counts. */
  take({ fragment, events }: EventsMessage): RevisionEvents[] | 'disordered' {
    this.#pending.push(...events);
    if (fragment) return [];
    const complete = byRevision(this.#pending);
    this.#pending = [];
    for (const { revision } of complete) {
      if (revision <= this.#last) return 'disordered';
      this.#last = revision;
    }
    return complete;
  }
}

function byRevision(events: readonly EtcdEvent[]): { revision: number; events: EtcdEvent[] }[] {
  const groups: { revision: number; events: EtcdEvent[] }[] = [];
  for (const event of events) {
    const revision = event.row.modRevision;
    const last = groups.at(-1);
    if (last?.revision === revision) last.events.push(event);
    else groups.push({ revision, events: [event] });
  }
  return groups;
}
