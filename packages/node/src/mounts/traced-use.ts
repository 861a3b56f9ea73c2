import type { Tracer } from '@transitd/process';
import type { UseObserver } from '@transitd/transit-engine';

/** Returns an observer that makes a span of each use of a key, and of each generation of one. */
export const tracedUse = (tracer: Tracer): UseObserver => ({
  began: (items) => {
    const span = tracer.current()?.child('crypto');
    span?.set('transitd.items', items);
    return span && ((failed) => span.end(failed));
  },
  generating: () => {
    const span = tracer.current()?.child('generate');
    return span && ((failed) => span.end(failed));
  },
});
