import { useState } from 'preact/hooks';
import { textsIn } from '../api/json.ts';
import { refusalWords, segments } from '../api/request.ts';
import { call } from '../api/session.ts';
import { Note } from '../parts/badge.tsx';
import { hrefOf } from '../parts/route.ts';

/** The types of keys that need no further settings; the first is the default of the API. */
const types = [
  ...['aes256-gcm96', 'aes128-gcm96', 'chacha20-poly1305', 'ed25519', 'ecdsa-p256', 'ecdsa-p384', 'ecdsa-p521'],
  ...['rsa-2048', 'rsa-3072', 'rsa-4096'],
] as const;

const flags = [
  ['derived', 'Derive a key for each context'],
  ['exportable', 'Allow export of the material, for good'],
  ['allow_plaintext_backup', 'Allow a backup in plaintext, for good'],
] as const;

/** A form that creates a key. It is closed until somebody opens it. @param onCreated - called with the new key in the list's mount */
export function CreateKey({ mount, onCreated }: { readonly mount: string; readonly onCreated: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefusal] = useState('');

  const create = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const fields = new FormData(event.currentTarget);
    const name = String(fields.get('name') ?? '').trim();
    setBusy(true);
    setRefusal('');
    try {
      const body = { type: fields.get('type'), ...Object.fromEntries(flags.map(([flag]) => [flag, fields.has(flag)])) };
      const { warnings } = await call('POST', `${segments(mount)}/keys/${encodeURIComponent(name)}`, { body });
      const [warning] = textsIn(warnings);
      if (warning === undefined) {
        setOpen(false);
        onCreated();
        location.hash = hrefOf('keys', mount, name);
      } else setRefusal(warning);
    } catch (error) {
      setRefusal(refusalWords(error));
    }
    setBusy(false);
  };
  return (
    <>
      <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        Create a key …
      </button>
      {isOpen && (
        <form class="create" onSubmit={(event) => void create(event)}>
          <label class="field">
            Name of the key
            <input name="name" type="text" required autocomplete="off" autocapitalize="none" spellcheck={false} />
          </label>
          <label class="field">
            Type
            <select name="type">
              {types.map((type) => (
                <option key={type} value={type}>
                  {type}
                </option>
              ))}
            </select>
          </label>
          {flags.map(([flag, words]) => (
            <label key={flag} class="check">
              <input type="checkbox" name={flag} /> {words}
            </label>
          ))}
          {refusal !== '' && <Note tone="bad">{refusal}</Note>}
          <button type="submit" class="main" disabled={isBusy}>
            Create
          </button>
        </form>
      )}
    </>
  );
}
