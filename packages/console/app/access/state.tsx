import { useEffect, useState } from 'preact/hooks';
import { flagIn, type Json, numberIn, objectIn, textIn } from '../api/json.ts';
import { ApiError } from '../api/request.ts';
import { call, signedIn } from '../api/session.ts';
import { Badge } from '../parts/badge.tsx';
import { count, moment } from '../parts/format.ts';

/** Data of a path, or why it cannot be read; undefined until it is read. Give a component whose path changes the path as its `key`. */
export function useData(
  path: string,
  verb: 'GET' | 'LIST' = 'GET',
): { readonly data?: Json; readonly error?: string } | undefined {
  const [state, setState] = useState<{ readonly data?: Json; readonly error?: string }>();
  useEffect(() => {
    call(verb, path).then(
      (answer) => setState({ data: 'data' in answer && answer['data'] !== null ? objectIn(answer['data']) : answer }),
      (error: unknown) => setState({ error: unreadWords(error) }),
    );
  }, [path, verb]);
  return state;
}

/** The API says by 404 that a list is empty or that nothing was written. */
function unreadWords(error: unknown): string {
  if (error instanceof ApiError && error.status === 404) return 'there is nothing here';
  return error instanceof ApiError && error.status !== 403 ? error.message : 'your token may not read this';
}

type Fact = readonly [label: string, value: string];

const Facts = ({ rows }: { readonly rows: readonly Fact[] }) => (
  <dl class="facts">
    {rows.map(([label, value]) => (
      <div key={label}>
        <dt>{label}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);

/** The token of this session. */
export function OwnToken() {
  const caller = signedIn();
  if (caller === undefined) return null;
  const { details, name, policies } = caller;
  if (Object.keys(details).length === 0) return <p class="muted">Your token may not look itself up.</p>;
  const uses = numberIn(details['num_uses']);
  const expiry = textIn(details['expire_time']);
  return (
    <Facts
      rows={[
        ['Display name', name],
        ['Policies', policies.join(', ')],
        ['Type', textIn(details['type'])],
        ['Created by', textIn(details['path'])],
        ['Accessor', textIn(details['accessor'])],
        ['Expires', expiry === '' ? 'never' : moment(expiry)],
        ['Uses left', uses === 0 ? 'unlimited' : count(uses)],
        ['Renewable', flagIn(details['renewable']) ? 'yes' : 'no'],
        ['Orphan', flagIn(details['orphan']) ? 'yes' : 'no'],
      ]}
    />
  );
}

/** The seal of this node, and the barrier's key. */
export function SealState() {
  const seal = useData('sys/seal-status');
  const key = useData('sys/key-status');
  if (seal?.data === undefined) return <p class="muted">{seal?.error ?? 'Reading …'}</p>;
  const { type, n, t, sealed, recovery_seal, cluster_name } = seal.data;
  const rows: Fact[] = [
    ['Cluster', textIn(cluster_name)],
    ['Seal', textIn(type)],
    [flagIn(recovery_seal) ? 'Recovery shares' : 'Shares', `${numberIn(t)} of ${numberIn(n)} needed`],
  ];
  if (key?.data !== undefined)
    rows.push(
      ['Key term of the barrier', count(numberIn(key.data['term']))],
      ['In use since', moment(textIn(key.data['install_time']))],
      ['Values encrypted with it', count(numberIn(key.data['encryptions']))],
    );
  return (
    <>
      <p>
        {flagIn(sealed) ? <Badge tone="warn">sealed</Badge> : <Badge tone="ok">unsealed</Badge>}
        {key?.error !== undefined && <span class="muted small"> Key of the barrier: {key.error}.</span>}
      </p>
      <Facts rows={rows} />
    </>
  );
}

/** The audit devices of this node. */
export function AuditDevices() {
  const devices = useData('sys/audit');
  if (devices?.data === undefined) return <p class="muted">{devices?.error ?? 'Reading …'}</p>;
  const rows = Object.values(devices.data).map(objectIn);
  if (rows.length === 0) return <p class="muted">This node has no audit device: nothing records who asked for what.</p>;
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Device</th>
          <th scope="col">Type</th>
          <th scope="col">Target</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ path, type, options }) => (
          <tr key={textIn(path)}>
            <th scope="row">{textIn(path).replace(/\/$/, '')}</th>
            <td>{textIn(type)}</td>
            <td class="mono wrap">{textIn(objectIn(options)['file_path'])}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
