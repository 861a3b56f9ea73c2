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
 * Makes whole revisions from the messages of one watch stream. etcd splits a large message into fragments anywhere, so a revision counts
 * only when the next one has begun, or the last fragment has arrived. It does not wait for the whole message, which may have a thousand
 * revisions for a node that is behind. Fragments of a stream that ended are dropped with this object; the next stream begins after the last
 * whole revision.
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
    const complete = byRevision([...this.#pending, ...events]);
    this.#pending = fragment ? (complete.pop()?.events ?? []) : [];
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
