import { useState } from 'preact/hooks';
import { count } from '../parts/format.ts';

interface NamesProps {
  readonly label: string;
  readonly names: readonly string[];
  readonly chosen: string;
  readonly onChoose: (name: string) => void;
}

/** A list of names with a search, of which one can be chosen. */
export function Names({ label, names, chosen, onChoose }: NamesProps) {
  const [search, setSearch] = useState('');
  const wanted = search.trim().toLowerCase();
  const found = names.filter((name) => name.toLowerCase().includes(wanted));
  return (
    <div>
      <label class="field">
        {label}
        <input type="search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
      </label>
      <ul class="names">
        {found.slice(0, shownMax).map((name) => (
          <li key={name}>
            <button type="button" class="name-button" aria-pressed={name === chosen} onClick={() => onChoose(name)}>
              {name}
            </button>
          </li>
        ))}
      </ul>
      {found.length > shownMax && <p class="muted small">{count(found.length - shownMax)} more; search to find them.</p>}
    </div>
  );
}

const shownMax = 200;
