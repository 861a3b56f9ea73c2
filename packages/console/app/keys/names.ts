import { useEffect, useState } from 'preact/hooks';
import { objectIn, textIn, textsIn } from '../api/json.ts';
import { ApiError, segments } from '../api/request.ts';
import { call } from '../api/session.ts';

export interface Names {
  readonly names: readonly string[];
  readonly isComplete: boolean;
  readonly error?: ApiError;
}

/** The first page is small, so that names appear at once; the others are large, so that 100,000 names take few requests. */
const firstLimit = 1000;
const nextLimit = 20_000;
/** More names than this would take too much memory of the browser. A key beyond them is opened by its name. */
export const namesMax = 500_000;

/** The names of the keys of a mount, page by page. `again` reads them again when it changes. */
export function useNames(mount: string, again: number): Names {
  const [state, setState] = useState<Names>({ names: [], isComplete: false });
  useEffect(() => {
    const ended = new AbortController();
    const { signal } = ended;
    setState({ names: [], isComplete: false });
    const read = async (): Promise<void> => {
      const names: string[] = [];
      try {
        for await (const page of pagesOf(mount, signal)) {
          names.push(...page);
          if (signal.aborted) return;
          setState({ names: [...names], isComplete: false });
          if (names.length >= namesMax) return;
        }
        if (!signal.aborted) setState({ names, isComplete: true });
      } catch (error) {
        const known = error instanceof ApiError ? error : new ApiError(0, String(error));
        if (!signal.aborted) setState({ names, isComplete: true, error: known });
      }
    };
    void read();
    return () => ended.abort();
  }, [mount, again]);
  return state;
}

/** Yields pages until one is empty: a policy may make a page shorter than its limit. */
async function* pagesOf(mount: string, signal: AbortSignal): AsyncGenerator<readonly string[]> {
  for (let after = '', limit = firstLimit; ; limit = nextLimit) {
    const query = new URLSearchParams({ limit: String(limit), ...(after !== '' && { after }) });
    const page = await pageAt(`${segments(mount)}/keys?${query}`, signal);
    if (page.length === 0) return;
    yield page;
    after = page.at(-1) ?? '';
  }
}

/** Reads one page. A list without names is 404. */
async function pageAt(path: string, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return textsIn(objectIn((await call('LIST', path, { signal }))['data'])['keys']);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return [];
    throw error;
  }
}

export interface Mounts {
  readonly paths: readonly string[];
  readonly error?: ApiError;
}

/** The transit mounts that the caller may see, without their last slash; undefined until they are read. */
export function useMounts(): Mounts | undefined {
  const [mounts, setMounts] = useState<Mounts>();
  useEffect(() => {
    const ended = new AbortController();
    call('GET', 'sys/internal/ui/mounts', { signal: ended.signal }).then(
      ({ data }) => {
        const secret = Object.entries(objectIn(objectIn(data)['secret']));
        const paths = secret
          .filter(([, mount]) => textIn(objectIn(mount)['type']) === 'transit')
          .map(([path]) => path.replace(/\/$/, ''));
        setMounts({ paths: paths.sort() });
      },
      (error: unknown) => {
        if (!ended.signal.aborted)
          setMounts({ paths: [], error: error instanceof ApiError ? error : new ApiError(0, String(error)) });
      },
    );
    return () => ended.abort();
  }, []);
  return mounts;
}
