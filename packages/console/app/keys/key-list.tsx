import { useEffect, useMemo, useState } from 'preact/hooks';
import { Note } from '../parts/badge.tsx';
import { count } from '../parts/format.ts';
import { hrefOf } from '../parts/route.ts';
import { namesMax, useNames } from './names.ts';

const pageSize = 100;

/** The names of a mount: search within the names, and paging. */
export function KeyList({ mount, chosen, again }: { readonly mount: string; readonly chosen: string; readonly again: number }) {
  const [search, setSearch] = useState('');
  const [page, setPage] = useState(0);
  const { names, isComplete, error } = useNames(mount, again);
  const wanted = search.trim().toLowerCase();
  const found = useMemo(
    () => (wanted === '' ? names : names.filter((name) => name.toLowerCase().includes(wanted))),
    [names, wanted],
  );
  const pages = Math.max(1, Math.ceil(found.length / pageSize));
  const shown = Math.min(page, pages - 1);
  // Another search or mount begins at its first page.
  useEffect(() => setPage(0), [wanted, mount]);

  const open = (event: SubmitEvent): void => {
    event.preventDefault();
    const name = search.trim();
    if (name !== '') location.hash = hrefOf('keys', mount, found.length === 1 ? (found[0] ?? name) : name);
  };
  return (
    <>
      <search>
        <form onSubmit={open}>
          <label class="field">
            Search
            <input
              type="search"
              value={search}
              onInput={(event) => setSearch(event.currentTarget.value)}
              autocapitalize="none"
              spellcheck={false}
            />
          </label>
        </form>
      </search>
      {error !== undefined && (
        <Note tone="warn">
          {error.status === 403
            ? 'Your token may not list the keys of this mount. Type the name of a key and press Enter.'
            : `The names cannot be read: ${error.message}.`}
        </Note>
      )}
      <p class="muted small" role="status">
        {count(found.length)} {found.length === 1 ? 'key' : 'keys'}
        {!isComplete && (names.length >= namesMax ? ' (the first ones only)' : ' so far …')}
      </p>
      {isComplete && error === undefined && names.length === 0 && (
        <p>There is no key on this mount yet. Create one here, with the command line or through the API.</p>
      )}
      <ul class="names">
        {found.slice(shown * pageSize, (shown + 1) * pageSize).map((name) => (
          <li key={name}>
            <a href={hrefOf('keys', mount, name)} aria-current={name === chosen ? 'true' : undefined}>
              {name}
            </a>
          </li>
        ))}
      </ul>
      {pages > 1 && (
        <nav class="pager" aria-label="Pages of keys">
          <button type="button" disabled={shown === 0} onClick={() => setPage(shown - 1)}>
            Previous
          </button>
          <span class="muted small">
            {count(shown + 1)} of {count(pages)}
          </span>
          <button type="button" disabled={shown >= pages - 1} onClick={() => setPage(shown + 1)}>
            Next
          </button>
        </nav>
      )}
    </>
  );
}
