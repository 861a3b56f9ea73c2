import { useEffect, useState } from 'preact/hooks';
import { ApiError, segments } from '../api/request.ts';
import { call } from '../api/session.ts';
import { Badge, Note } from '../parts/badge.tsx';
import { duration } from '../parts/format.ts';
import { hrefOf } from '../parts/route.ts';
import { type Key, keyIn } from './key.ts';
import { KeyChanges } from './key-changes.tsx';
import { TryIt } from './try-it.tsx';
import { VersionTimeline } from './version-timeline.tsx';

/** One key: settings, versions, changes, and operations to try. */
export function KeyDetails({ mount, name }: { readonly mount: string; readonly name: string }) {
  const [key, setKey] = useState<Key>();
  const [error, setError] = useState<ApiError>();
  const path = `${segments(mount)}/keys/${encodeURIComponent(name)}`;
  useEffect(() => {
    const ended = new AbortController();
    call('GET', path, { signal: ended.signal }).then(
      ({ data }) => setKey(keyIn(data)),
      (thrown: unknown) => {
        if (!ended.signal.aborted) setError(thrown instanceof ApiError ? thrown : new ApiError(0, String(thrown)));
      },
    );
    return () => ended.abort();
  }, [path]);

  const back = (
    <a class="back" href={hrefOf('keys', mount)}>
      All keys of {mount}
    </a>
  );
  if (error !== undefined)
    return (
      <>
        {back}
        <Note tone={error.status === 404 ? 'warn' : 'bad'}>
          {error.status === 404 ? `There is no key ${name} on ${mount}.` : `The key ${name} cannot be read: ${error.message}.`}
        </Note>
      </>
    );
  if (key === undefined) return <p class="muted">Reading the key …</p>;
  return (
    <>
      {back}
      <section aria-labelledby="key-title">
        <h2 id="key-title" class="key-name">
          {key.name} <Badge tone="quiet">{key.type}</Badge>
        </h2>
        <Settings value={key} />
      </section>
      <section aria-labelledby="versions-title">
        <h2 id="versions-title">Versions</h2>
        <VersionTimeline value={key} />
        <KeyChanges value={key} path={path} onChanged={setKey} />
      </section>
      <section aria-labelledby="try-title">
        <h2 id="try-title">Try it</h2>
        <TryIt value={key} mount={mount} />
      </section>
    </>
  );
}

function Settings({ value: key }: { readonly value: Key }) {
  const yes = (holds: boolean): string => (holds ? 'yes' : 'no');
  const kept = (versions: number): string => (versions === 0 ? 'no limit' : `the newest ${versions}`);
  const rows: readonly (readonly [string, string])[] = [
    ['Latest version', String(key.latest)],
    ['Oldest that decrypts', String(key.minDecryption)],
    ['Oldest that encrypts', key.minEncryption === 0 ? 'latest only' : String(key.minEncryption)],
    ['Rotates by itself', key.autoRotateS === 0 ? 'never' : `every ${duration(key.autoRotateS)}`],
    ['Versions that encrypt', kept(key.keepEncryption)],
    ['Versions that decrypt', kept(key.keepDecryption)],
    ['Deletes old versions', key.trimAfterS === 0 ? 'never' : `after ${duration(key.trimAfterS)}`],
    ['Derived', yes(key.isDerived)],
    ['Imported', yes(key.isImported)],
    ['Exportable', yes(key.isExportable)],
    ['Plaintext backup', yes(key.hasPlaintextBackup)],
    ['May be deleted', yes(key.isDeletable)],
  ];
  return (
    <dl class="facts">
      {rows.map(([label, text]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}
