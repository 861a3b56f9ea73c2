import { useState } from 'preact/hooks';
import { objectIn, textIn, textsIn } from '../api/json.ts';
import { segments } from '../api/request.ts';
import { count } from '../parts/format.ts';
import { Names } from './names.tsx';
import { useData } from './state.tsx';

/** Where each type of auth method has its roles, by the name that the API has for them, and whether it has a configuration. */
const places: ReadonlyMap<string, { readonly roles: string; readonly config: boolean }> = new Map([
  ['approle', { roles: 'role', config: false }],
  ['cert', { roles: 'certs', config: false }],
  ['jwt', { roles: 'role', config: true }],
  ['kubernetes', { roles: 'role', config: true }],
  ['token', { roles: 'roles', config: false }],
  ['userpass', { roles: 'users', config: false }],
]);

/** The auth methods, and for a chosen one its configuration and roles. */
export function AuthMethods() {
  const methods = useData('sys/auth');
  const [chosen, setChosen] = useState('');
  if (methods?.data === undefined) return <p class="muted">{methods?.error ?? 'Reading …'}</p>;
  const rows = Object.entries(methods.data).map(([path, value]) => ({ path, method: objectIn(value) }));
  const place = places.get(textIn(objectIn(methods.data[chosen])['type']));
  const at = `auth/${segments(chosen)}`;
  return (
    <>
      <table class="settings">
        <thead>
          <tr>
            <th scope="col">Method</th>
            <th scope="col">Type</th>
            <th scope="col">Description</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ path, method }) => (
            <tr key={path}>
              <th scope="row" class="wrap">
                <button type="button" class="name-button" aria-pressed={path === chosen} onClick={() => setChosen(path)}>
                  {path}
                </button>
              </th>
              <td>{textIn(method['type'])}</td>
              <td class="wrap">{textIn(method['description'])}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {place?.config === true && <Settings key={`${at}/config`} path={`${at}/config`} />}
      {place !== undefined && <Roles key={at} path={`${at}/${place.roles}`} />}
    </>
  );
}

function Roles({ path }: { readonly path: string }) {
  const list = useData(path, 'LIST');
  const [chosen, setChosen] = useState('');
  const role = `${path}/${segments(chosen)}`;
  return (
    <>
      <h3 class="wrap">{path}</h3>
      {list?.data === undefined ? (
        <p class="muted">{list?.error ?? 'Reading …'}</p>
      ) : (
        <div class="policies">
          <Names label="Search roles" names={textsIn(list.data['keys'])} chosen={chosen} onChoose={setChosen} />
          <div>{chosen !== '' && <Settings key={role} path={role} />}</div>
        </div>
      )}
    </>
  );
}

/** All fields that the node returns for a path: none is left out, and none is known here. */
function Settings({ path }: { readonly path: string }) {
  const settings = useData(path);
  return (
    <>
      <h3 class="wrap">{path}</h3>
      {settings?.data === undefined ? (
        <p class="muted">{settings?.error ?? 'Reading …'}</p>
      ) : (
        <table class="settings">
          <thead>
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Value</th>
            </tr>
          </thead>
          <tbody>
            {Object.entries(settings.data).map(([field, value]) => (
              <tr key={field}>
                <th scope="row" class="wrap">
                  {field}
                </th>
                <td class="mono wrap">{shortened(typeof value === 'string' ? value : JSON.stringify(value))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

const shownChars = 300;

/** Returns the beginning of a long text and the number of characters left out. */
function shortened(text: string): string {
  const chars = [...text];
  if (chars.length <= shownChars) return text;
  return `${chars.slice(0, shownChars).join('')} … ${count(chars.length - shownChars)} more characters`;
}
