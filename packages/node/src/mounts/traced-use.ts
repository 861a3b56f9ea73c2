import type { Tracer } from '@transitd/process';
import type { UseObserver } from '@transitd/transit-engine';

/** Returns an observer that makes a span of each use of a key. */
export const tracedUse = (tracer: Tracer): UseObserver => ({
  began: (items) => {
    const span = tracer.current()?.child('crypto');
    span?.set('transitd.items', items);
    return span && ((failed) => span.end(failed));
  },
});
