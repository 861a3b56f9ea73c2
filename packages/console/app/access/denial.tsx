import { useState } from 'preact/hooks';
import { objectIn, textIn, textsIn } from '../api/json.ts';
import { refusalWords, segments } from '../api/request.ts';
import { call } from '../api/session.ts';
import { Note } from '../parts/badge.tsx';
import { decisionIn, type Explanation, explain, type PolicyDecision } from './explanation.ts';
import { pathIn, verbs } from './requests.ts';
import { needsSudo } from './sudo-paths.ts';

/** Asks the node for the capabilities of a token on a path, and the policies of the token for their reasons. */
export function Denial() {
  const [accessor, setAccessor] = useState('');
  const [path, setPath] = useState('');
  const [capability, setCapability] = useState<string>('update');
  const [answer, setAnswer] = useState<Explanation & { readonly granted: readonly string[] }>();
  const [error, setError] = useState('');

  const ask = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setError('');
    setAnswer(undefined);
    const asked = pathIn(path, capability);
    const subject = accessor.trim();
    try {
      const [granted, policies, document] = await Promise.all([
        capabilitiesOf(subject, asked),
        policiesOf(subject),
        call('GET', 'sys/internal/specs/openapi'),
      ]);
      const all = await Promise.all(policies.filter((name) => name !== 'root').map((name) => evaluated(name, asked)));
      const decisions = all.map(({ decision }) => decision);
      const needed = { capability, sudo: needsSudo(document, asked, capability) };
      setAnswer({ ...explain(granted, needed, decisions, await decidingRule(all, asked)), granted });
    } catch (thrown) {
      setError(refusalWords(thrown));
    }
  };
  return (
    <form onSubmit={(event) => void ask(event)}>
      <div class="row">
        <label class="field">
          Accessor of the token (empty: your own)
          <input type="text" value={accessor} spellcheck={false} onInput={(event) => setAccessor(event.currentTarget.value)} />
        </label>
        <label class="field">
          Path
          <input
            type="text"
            value={path}
            required
            placeholder="transit/encrypt/orders"
            spellcheck={false}
            autocapitalize="none"
            onInput={(event) => setPath(event.currentTarget.value)}
          />
        </label>
        <label class="field">
          Request
          <select value={capability} onChange={(event) => setCapability(event.currentTarget.value)}>
            {verbs.map(({ verb, capability: name }) => (
              <option key={name} value={name}>
                {verb} – {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      <div class="buttons">
        <button type="submit" class="main">
          Explain
        </button>
      </div>
      {error !== '' && <Note tone="bad">No answer: {error}.</Note>}
      {answer !== undefined && (
        <Note tone={answer.isAllowed ? 'ok' : 'bad'}>
          <p>
            <strong>{answer.isAllowed ? 'Allowed' : 'Denied'}.</strong> Capabilities on the path: {answer.granted.join(', ')}.
          </p>
          {answer.sentences.map((sentence) => (
            <p key={sentence}>{sentence}</p>
          ))}
        </Note>
      )}
    </form>
  );
}

async function capabilitiesOf(accessor: string, path: string): Promise<readonly string[]> {
  const [name, who] = accessor === '' ? (['capabilities-self', {}] as const) : (['capabilities-accessor', { accessor }] as const);
  const { data } = await call('POST', `sys/${name}`, { body: { ...who, paths: [path] } });
  return textsIn(objectIn(data)['capabilities']);
}

async function policiesOf(accessor: string): Promise<readonly string[]> {
  const { data } =
    accessor === ''
      ? await call('GET', 'auth/token/lookup-self')
      : await call('POST', 'auth/token/lookup-accessor', { body: { accessor } });
  return textsIn(objectIn(data)['policies']);
}

interface Evaluated {
  readonly decision: PolicyDecision;
  /** The text of the policy; undefined if it could not be read. */
  readonly text?: string;
}

/** Evaluates one policy alone; needs the rights to read and to check it. */
async function evaluated(name: string, path: string): Promise<Evaluated> {
  try {
    const { data } = await call('GET', `sys/policies/acl/${segments(name)}`);
    const text = textIn(objectIn(data)['policy']);
    return { decision: decisionIn(name, await checked(text, path)), text };
  } catch (error) {
    return { decision: { policy: name, capabilities: [], rule: '', error: refusalWords(error) } };
  }
}

/**
 * Returns the rule that decides in all these policies together. Their texts are evaluated as one policy, so this works if all of them are
 * HCL and were read.
 */
async function decidingRule(all: readonly Evaluated[], path: string): Promise<string | undefined> {
  const texts = all.flatMap(({ text }) => (text === undefined || /^\s*\{/.test(text) ? [] : [text]));
  if (texts.length === 0 || texts.length < all.length) return undefined;
  return checked(texts.join('\n'), path).then(
    (data) => decisionIn('', data).rule,
    () => undefined,
  );
}

const checked = async (policy: string, path: string): Promise<unknown> =>
  (await call('POST', 'sys/policies/check', { body: { policy, paths: [path] } }))['data'];
