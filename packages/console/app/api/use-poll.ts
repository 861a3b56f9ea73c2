import { useEffect, useState } from 'preact/hooks';
import type { Json } from './json.ts';
import { failed, type Latest } from './latest.ts';
import { ApiError } from './request.ts';
import { readPublic } from './session.ts';

/** Reads what a node tells everybody again and again while the page is visible. A failed request leaves the last answer in place. */
export function usePoll<T>(path: string, everyMs: number, read: (answer: Json) => T): Latest<T> {
  const [state, setState] = useState<Latest<T>>({});
  useEffect(() => {
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const poll = async (): Promise<void> => {
      try {
        const answer = await readPublic(path, AbortSignal.any([ended.signal, AbortSignal.timeout(everyMs * 2)]));
        if (!ended.signal.aborted) setState({ value: read(answer) });
      } catch (error) {
        const known = error instanceof ApiError ? error : new ApiError(0, String(error));
        if (!ended.signal.aborted) setState((before) => failed(before, known));
      }
      plan();
    };
    const plan = (): void => {
      if (!ended.signal.aborted && !document.hidden) timer = setTimeout(() => void poll(), everyMs);
    };
    const onVisible = (): void => {
      clearTimeout(timer);
      if (!document.hidden) void poll();
    };
    document.addEventListener('visibilitychange', onVisible, { signal: ended.signal });
    void poll();
    return () => {
      ended.abort();
      clearTimeout(timer);
    };
  }, [path, everyMs, read]);
  return state;
}
