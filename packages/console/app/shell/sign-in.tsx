import { useEffect, useState } from 'preact/hooks';
import type { Json } from '../api/json.ts';
import { ApiError } from '../api/request.ts';
import { lastNotice, signIn, signInByJwt, signInByPassword } from '../api/session.ts';
import { usePoll } from '../api/use-poll.ts';
import { Replication } from '../cluster/replication-state.tsx';
import { Note } from '../parts/badge.tsx';

type Way = 'token' | 'userpass' | 'jwt';

const sealEveryMs = 5000;

/** Reads the answer of `sys/seal-status`: why nobody can sign in at this node; empty if somebody can. */
function sealNotice({ initialized, sealed }: Json): string {
  if (initialized === false) return 'The cluster of this node is not initialized, so nobody can sign in.';
  return sealed === true
    ? 'This node is sealed, so nobody can sign in here. Unseal it, or open the console of another node.'
    : '';
}

/** Asks for a token, or for a name and a password. */
export function SignIn() {
  const [way, setWay] = useState<Way>('token');
  const [error, setError] = useState('');
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    document.title = 'Sign in · transitd';
  }, []);

  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const fields = new FormData(event.currentTarget);
    const text = (name: string): string => String(fields.get(name) ?? '').trim();
    setBusy(true);
    setError('');
    try {
      if (way === 'token') await signIn(text('token'));
      else if (way === 'jwt') await signInByJwt(text('method') || 'jwt', text('role'), text('jwt'));
      else await signInByPassword(text('method') || 'userpass', text('name'), String(fields.get('password') ?? ''));
    } catch (thrown) {
      setBusy(false);
      setError(wordsFor(thrown, way));
    }
  };

  const notice = lastNotice();
  const { value: sealed = '' } = usePoll('sys/seal-status', sealEveryMs, sealNotice);
  return (
    <main class="sign-in">
      <h1>
        <span class="brand">transitd</span> console
      </h1>
      {notice !== '' && error === '' && <Note tone="warn">{notice}</Note>}
      {sealed !== '' && <Note tone="warn">{sealed}</Note>}
      <form onSubmit={(event) => void submit(event)}>
        <fieldset class="ways">
          <legend>Sign in with</legend>
          <label>
            <input type="radio" name="way" checked={way === 'token'} onChange={() => setWay('token')} /> Token
          </label>
          <label>
            <input type="radio" name="way" checked={way === 'userpass'} onChange={() => setWay('userpass')} /> Name and password
          </label>
          <label>
            <input type="radio" name="way" checked={way === 'jwt'} onChange={() => setWay('jwt')} /> JWT
          </label>
        </fieldset>
        {way === 'token' ? (
          <label class="field">
            Token
            <input key="token" name="token" type="password" autocomplete="off" required autofocus spellcheck={false} />
          </label>
        ) : way === 'jwt' ? (
          <>
            <label class="field">
              JWT
              <input key="jwt" name="jwt" type="password" autocomplete="off" required spellcheck={false} />
            </label>
            <label class="field">
              Role
              <input key="role" name="role" type="text" placeholder="the default role" autocapitalize="none" spellcheck={false} />
            </label>
            <label class="field">
              Path of the auth method
              <input key="jwt-method" name="method" type="text" placeholder="jwt" autocapitalize="none" spellcheck={false} />
            </label>
          </>
        ) : (
          <>
            <label class="field">
              Name
              <input
                key="name"
                name="name"
                type="text"
                autocomplete="username"
                required
                autocapitalize="none"
                spellcheck={false}
              />
            </label>
            <label class="field">
              Password
              <input key="password" name="password" type="password" autocomplete="current-password" required />
            </label>
            <label class="field">
              Path of the auth method
              <input key="method" name="method" type="text" placeholder="userpass" autocapitalize="none" spellcheck={false} />
            </label>
          </>
        )}
        {error !== '' && <Note tone="bad">{error}</Note>}
        <button type="submit" class="main" disabled={isBusy}>
          {isBusy ? 'Signing in …' : 'Sign in'}
        </button>
      </form>
      <Replication />
      <p class="muted small">The token stays in the memory of this page. Reloading the page signs you out.</p>
    </main>
  );
}

function wordsFor(error: unknown, way: Way): string {
  if (!(error instanceof ApiError)) return 'Signing in failed.';
  if (way === 'jwt' && (error.status === 400 || error.status === 403)) return `The JWT was refused: ${error.message}.`;
  if (error.status === 403)
    return way === 'token'
      ? 'This token is not valid, or it may neither look itself up nor read the cluster.'
      : 'Wrong name or password, or the user may neither look up its token nor read the cluster.';
  if (error.status === 400 && way === 'userpass') return `Wrong name or password, or no such auth method (${error.message}).`;
  return `Signing in failed: ${error.message}.`;
}
