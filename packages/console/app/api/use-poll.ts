import { useEffect, useState } from 'preact/hooks';
import { failed, type Latest } from './latest.ts';
import { ApiError } from './request.ts';
import { readPublic } from './session.ts';

/** Reads what a node tells everybody again and again while the page is visible. A failed request leaves the last answer in place. */
export function usePoll<T>(path: string, everyMs: number, read: (data: unknown) => T): Latest<T> {
  const [state, setState] = useState<Latest<T>>({});
  useEffect(() => {
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const poll = async (): Promise<void> => {
      try {
        const { data } = await readPublic(path, AbortSignal.any([ended.signal, AbortSignal.timeout(everyMs * 2)]));
        if (!ended.signal.aborted) setState({ value: read(data) });
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
