import { useEffect, useState } from 'preact/hooks';
import { AccessPage } from '../access/access-page.tsx';
import { leave, onSession, signedIn } from '../api/session.ts';
import { ClusterPage } from '../cluster/cluster-page.tsx';
import { KeysPage } from '../keys/keys-page.tsx';
import { pages, useRoute } from '../parts/route.ts';
import { SignIn } from './sign-in.tsx';

/** The whole console: the page that signs in, or the pages behind it. */
export function App() {
  const [caller, setCaller] = useState(signedIn());
  useEffect(() => onSession(() => setCaller(signedIn())), []);
  if (caller === undefined) return <SignIn />;
  return <Frame name={caller.name} />;
}

function Frame({ name }: { readonly name: string }) {
  const { page } = useRoute();
  const { title } = pages[page];
  useEffect(() => {
    document.title = `${title} · transitd`;
  }, [title]);
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <span class="brand">transitd</span>
        <nav aria-label="Pages">
          {Object.entries(pages).map(([id, { title: label }]) => (
            <a key={id} class="tab" href={`#/${id}`} aria-current={id === page ? 'page' : undefined}>
              {label}
            </a>
          ))}
        </nav>
        <span class="who">
          <span class="muted">{name}</span>
          <button type="button" class="plain" onClick={leave}>
            Sign out
          </button>
        </span>
      </header>
      <main id="main" tabIndex={-1}>
        <h1>{title}</h1>
        {page === 'cluster' && <ClusterPage />}
        {page === 'keys' && <KeysPage />}
        {page === 'access' && <AccessPage />}
      </main>
    </>
  );
}
