import { useState } from 'preact/hooks';
import { Note } from '../parts/badge.tsx';
import { hrefOf, useRoute } from '../parts/route.ts';
import { CreateKey } from './create-key.tsx';
import { KeyDetails } from './key-details.tsx';
import { KeyList } from './key-list.tsx';
import { useMounts } from './names.ts';

/** The keys of the mounts: a list, and beside it the chosen key. */
export function KeysPage() {
  const mounts = useMounts();
  const { rest } = useRoute();
  const [again, setAgain] = useState(0);
  const [mount = mounts?.paths[0] ?? '', chosen = ''] = rest;
  if (mounts === undefined) return <p class="muted">Reading the mounts …</p>;
  if (mounts.error !== undefined) return <Note tone="bad">The mounts cannot be read: {mounts.error.message}.</Note>;
  if (mount === '') return <Note tone="info">Your token has no rights on any transit mount.</Note>;
  const paths = mounts.paths.includes(mount) ? mounts.paths : [...mounts.paths, mount];
  return (
    <div class={chosen === '' ? 'split' : 'split chosen'}>
      <section class="side" aria-label="Keys of a mount">
        <label class="field">
          Mount
          <select
            value={mount}
            onChange={(event) => {
              location.hash = hrefOf('keys', event.currentTarget.value);
            }}
          >
            {paths.map((path) => (
              <option key={path} value={path}>
                {path}
              </option>
            ))}
          </select>
        </label>
        <CreateKey key={`new ${mount}`} mount={mount} onCreated={() => setAgain(again + 1)} />
        <KeyList key={mount} mount={mount} chosen={chosen} again={again} />
        <button type="button" class="plain" onClick={() => setAgain(again + 1)}>
          Read the names again
        </button>
      </section>
      <div class="detail">
        {chosen === '' ? (
          <section class="muted">Choose a key to see its versions and settings.</section>
        ) : (
          <KeyDetails key={`${mount}/${chosen}`} mount={mount} name={chosen} />
        )}
      </div>
    </div>
  );
}
