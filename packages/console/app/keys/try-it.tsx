import { useState } from 'preact/hooks';
import { objectIn, textIn } from '../api/json.ts';
import { ApiError, segments } from '../api/request.ts';
import { call } from '../api/session.ts';
import { Note } from '../parts/badge.tsx';
import { CopyButton } from '../parts/copy-button.tsx';
import type { Key } from './key.ts';
import { bodyOf, type KeyOperation, operations, textOf } from './operations.ts';
import { type Language, languages, snippet } from './snippets.ts';

interface Result {
  readonly tone: 'ok' | 'bad';
  readonly label: string;
  readonly text: string;
}

/** Tries the operations that the key supports, and shows the same request as a program. */
export function TryIt({ value: key, mount }: { readonly value: Key; readonly mount: string }) {
  const offered = operations.filter(({ isFor }) => isFor(key));
  const [chosen, setChosen] = useState<KeyOperation | undefined>(offered[0]);
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const [context, setContext] = useState('');
  const [result, setResult] = useState<Result>();
  const [language, setLanguage] = useState<Language>('curl');
  if (chosen === undefined) return <p class="muted">No operation of this key can be tried here.</p>;
  const path = `${segments(mount)}/${chosen.path}/${encodeURIComponent(key.name)}`;
  const body = bodyOf(chosen, values, key.isDerived ? context : '');
  const program = snippet(language, { origin: location.origin, path, body });

  const run = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    try {
      const { data } = await call('POST', path, { body });
      const next = resultOf(objectIn(data));
      setResult(next);
      // The result is the input of the opposite operation.
      const member = ['ciphertext', 'signature', 'hmac'].find((name) => name in objectIn(data));
      if (member !== undefined) setValues({ ...values, [member]: next.text });
    } catch (error) {
      const refusal = error instanceof ApiError ? error : new ApiError(0, String(error));
      setResult({ tone: 'bad', label: 'Refused', text: refusal.status === 403 ? 'your token may not do this' : refusal.message });
    }
  };
  return (
    <div class="try">
      <form onSubmit={(event) => void run(event)}>
        <fieldset class="ways">
          <legend>Operation</legend>
          {offered.map((operation) => (
            <label key={operation.name}>
              <input
                type="radio"
                name="operation"
                checked={operation === chosen}
                onChange={() => {
                  setChosen(operation);
                  setResult(undefined);
                }}
              />{' '}
              {operation.name}
            </label>
          ))}
        </fieldset>
        {chosen.inputs.map(({ name, label }) => (
          <label key={name} class="field">
            {label}
            <textarea
              name={name}
              value={values[name] ?? ''}
              spellcheck={false}
              onInput={(event) => setValues({ ...values, [name]: event.currentTarget.value })}
            />
          </label>
        ))}
        {key.isDerived && (
          <label class="field">
            Context
            <input type="text" name="context" value={context} onInput={(event) => setContext(event.currentTarget.value)} />
          </label>
        )}
        <div class="buttons">
          <button type="submit" class="main">
            {chosen.name}
          </button>
        </div>
        {result !== undefined && (
          <Note tone={result.tone}>
            {result.label}
            <pre class="result">{result.text}</pre>
          </Note>
        )}
      </form>
      <div>
        <fieldset class="ways">
          <legend>The same as a program</legend>
          {languages.map((name) => (
            <label key={name}>
              <input type="radio" name="language" checked={name === language} onChange={() => setLanguage(name)} /> {name}
            </label>
          ))}
        </fieldset>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
        <pre id="program" class="program" tabIndex={0}>
          {program}
        </pre>
        <CopyButton text={program} from="program" />
      </div>
    </div>
  );
}

/** Names the one member of the answer that matters. */
function resultOf(data: Readonly<Record<string, unknown>>): Result {
  if ('valid' in data)
    return data['valid'] === true
      ? { tone: 'ok', label: 'Valid', text: 'it was made with this key from this message' }
      : { tone: 'bad', label: 'Not valid', text: 'it was not made with this key from this message' };
  if ('plaintext' in data) {
    const encoded = textIn(data['plaintext']);
    const plain = textOf(encoded);
    return plain === undefined
      ? { tone: 'ok', label: 'Plaintext, in base64 because it is not text', text: encoded }
      : { tone: 'ok', label: 'Plaintext', text: plain };
  }
  const label = ['ciphertext', 'signature', 'hmac'].find((name) => name in data) ?? '';
  return {
    tone: 'ok',
    label: label === 'hmac' ? 'HMAC' : label.charAt(0).toUpperCase() + label.slice(1),
    text: textIn(data[label]),
  };
}
