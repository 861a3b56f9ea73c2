import { useEffect, useState } from 'preact/hooks';
import { numberIn, objectIn, textIn, textsIn } from '../api/json.ts';
import { refusalWords, segments } from '../api/request.ts';
import { call } from '../api/session.ts';
import { Note } from '../parts/badge.tsx';
import { count } from '../parts/format.ts';
import { visible } from '../parts/visible.ts';
import { Names } from './names.tsx';

/** The policies: their texts, and a place to edit, validate and write one. */
export function Policies() {
  const [names, setNames] = useState<readonly string[]>([]);
  const [text, setText] = useState('');
  const [opened, setOpened] = useState('');
  /** Name of the policy that a write replaces or creates. */
  const [target, setTarget] = useState('');
  const [result, setResult] = useState<{ readonly tone: 'ok' | 'warn' | 'bad'; readonly lines: readonly string[] }>();
  useEffect(() => {
    call('LIST', 'sys/policies/acl').then(
      ({ data }) => setNames(textsIn(objectIn(data)['keys'])),
      (error: unknown) => setResult({ tone: 'warn', lines: [`The policies cannot be listed: ${refusalWords(error)}.`] }),
    );
  }, []);

  const open = async (name: string): Promise<void> => {
    try {
      const { data } = await call('GET', `sys/policies/acl/${segments(name)}`);
      setOpened(name);
      setTarget(name);
      setText(textIn(objectIn(data)['policy']));
      setResult(undefined);
    } catch (error) {
      setResult({ tone: 'bad', lines: [`${name} cannot be read: ${refusalWords(error)}.`] });
    }
  };
  const validate = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    try {
      const { data, warnings } = await call('POST', 'sys/policies/check', { body: { policy: text } });
      const rules = numberIn(objectIn(data)['rules']);
      const lines = [`Valid, with ${count(rules)} ${rules === 1 ? 'rule' : 'rules'}.`, ...textsIn(warnings)];
      setResult({ tone: lines.length > 1 ? 'warn' : 'ok', lines });
    } catch (error) {
      setResult({ tone: 'bad', lines: [refusalWords(error)] });
    }
  };
  const write = async (): Promise<void> => {
    const name = target.trim();
    try {
      const { warnings } = await call('POST', `sys/policies/acl/${segments(name)}`, { body: { policy: text } });
      const lines = [`Written: ${name}. Tokens with this policy have its rights from now on.`, ...textsIn(warnings)];
      setResult({ tone: lines.length > 1 ? 'warn' : 'ok', lines });
      setOpened(name);
      setNames((before) => [...new Set([...before, name])].sort());
    } catch (error) {
      setResult({ tone: 'bad', lines: [`${name} was not written: ${refusalWords(error)}.`] });
    }
  };
  return (
    <div class="policies">
      <Names label="Search" names={names} chosen={opened} onChoose={(name) => void open(name)} />
      <form onSubmit={(event) => void validate(event)}>
        <label class="field">
          Text {opened !== '' && <span class="muted">of {opened}</span>}
          <textarea
            class="policy"
            name="policy"
            value={text}
            spellcheck={false}
            placeholder={'path "transit/encrypt/orders" {\n  capabilities = ["update"]\n}'}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
        {text.split('\n').map(
          (line, index) =>
            visible(line) !== line && (
              <Note key={index} tone="warn">
                Line {index + 1} has hidden characters: <code>{line}</code>
              </Note>
            ),
        )}
        <label class="field">
          Write as
          <input
            type="text"
            value={target}
            autocapitalize="none"
            spellcheck={false}
            onInput={(event) => setTarget(event.currentTarget.value)}
          />
        </label>
        <div class="buttons">
          <button type="submit">Validate</button>
          <button type="button" class="main" disabled={target.trim() === '' || text === ''} onClick={() => void write()}>
            {names.includes(target.trim()) ? 'Replace the policy' : 'Create the policy'}
          </button>
        </div>
        {result !== undefined && (
          <Note tone={result.tone}>
            {result.lines.map((line) => (
              <p key={line}>{line}</p>
            ))}
          </Note>
        )}
      </form>
    </div>
  );
}
