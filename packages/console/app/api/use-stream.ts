import { useEffect, useState } from 'preact/hooks';
import { failed, type Latest } from './latest.ts';
import { ApiError } from './request.ts';
import { follow } from './session.ts';

/** Time before a stream that has ended is opened again. */
const againMs = 1000;

/** Follows the stream at `path` while the page is visible, and opens it again after each end. A failure leaves the last value in place. */
export function useStream<T>(path: string, read: (data: unknown) => T): Latest<T> {
  const [state, setState] = useState<Latest<T>>({});
  useEffect(() => {
    let ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const begin = async (): Promise<void> => {
      const { signal } = ended;
      try {
        await follow(path, (data) => !signal.aborted && setState({ value: read(data) }), signal);
      } catch (error) {
        const known = error instanceof ApiError ? error : new ApiError(0, String(error));
        if (!signal.aborted) setState((before) => failed(before, known));
      }
      if (!signal.aborted) timer = setTimeout(() => void begin(), againMs);
    };
    const end = (): void => {
      ended.abort();
      clearTimeout(timer);
    };
    const onVisibility = (): void => {
      end();
      ended = new AbortController();
      if (!document.hidden) void begin();
    };
    document.addEventListener('visibilitychange', onVisibility);
    onVisibility();
    return () => {
      document.removeEventListener('visibilitychange', onVisibility);
      end();
    };
  }, [path, read]);
  return state;
}
