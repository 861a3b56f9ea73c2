import { useEffect, useState } from 'preact/hooks';
import { ApiError, call, type readPublic } from './session.ts';

export interface Polled<T> {
  /** The newest answer; kept while later requests fail. */
  readonly value?: T;
  /** Why the newest request failed; absent after a success. */
  readonly error?: ApiError;
}

/**
 * Reads `path` again and again while the page is visible. Each request carries the token, so a revoked token ends the session at the next
 * one. A failed request leaves the last answer in place.
 * @param ask - sends the request; `readPublic` sends it without the token
 */
export function usePoll<T>(
  path: string,
  everyMs: number,
  read: (data: unknown) => T,
  ask: typeof call | typeof readPublic = call,
): Polled<T> {
  const [state, setState] = useState<Polled<T>>({});
  useEffect(() => {
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const poll = async (): Promise<void> => {
      try {
        const { data } = await ask('GET', path, { signal: AbortSignal.any([ended.signal, AbortSignal.timeout(everyMs * 2)]) });
        if (!ended.signal.aborted) setState({ value: read(data) });
      } catch (error) {
        const known = error instanceof ApiError ? error : new ApiError(0, String(error));
        if (!ended.signal.aborted) setState(({ value }) => ({ ...(value !== undefined && { value }), error: known }));
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
  }, [path, everyMs, read, ask]);
  return state;
}
