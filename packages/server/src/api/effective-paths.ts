import { policyName } from '@transitd/access';
import type { TransitEngine } from '@transitd/transit-engine';
import type { Body, JsonValue } from '../http/json.ts';
import type { Service } from '../node/node.ts';
import type { Call } from './operation.ts';

/** What an operation is asked: the segments behind its word, the members of its body. */
interface Asked {
  readonly segments: readonly string[];
  readonly body: Body;
  readonly engine: TransitEngine;
}

/** The path forms, behind the word, of the values that an operation will use. */
type PathForms = (asked: Asked) => readonly string[] | Promise<readonly string[]>;

const hashDefault = 'sha2-256';
const cmacBytes = '16';

/** `sign/<name>/<algorithm>`; a name given under the old member is looked at too, whichever of the two is used. */
const signing: PathForms = ({ segments: [name, algorithm], body }) =>
  givenOr(hashDefault, algorithm, textOf(body['hash_algorithm']), textOf(body['algorithm'])).map((value) => `${name}/${value}`);

const hmac: PathForms = ({ segments: [name, algorithm], body }) =>
  givenOr(hashDefault, algorithm, textOf(body['algorithm'])).map((value) => `${name}/${value}`);

const hash: PathForms = ({ segments: [algorithm], body }) => givenOr(hashDefault, algorithm, textOf(body['algorithm']));

/** `cmac/<name>/<length>`; 0 is another word for the whole MAC, and items may have lengths of their own. */
const cmac: PathForms = ({ segments: [name, length], body }) => {
  const items = Array.isArray(body['batch_input']) ? (body['batch_input'] as readonly JsonValue[]) : [];
  const ofItems = new Set(items.map((item) => textOf(memberOf(item, 'mac_length')) ?? textOf(body['mac_length']) ?? cmacBytes));
  const lengths = length !== undefined ? [length] : ofItems.size > 0 ? [...ofItems] : [textOf(body['mac_length']) ?? cmacBytes];
  const same = lengths.some((each) => each === '0' || each === cmacBytes) ? ['0', cmacBytes] : [];
  return [...new Set([...lengths, ...same])].map((each) => `${name}/${each}`);
};

const sources: readonly string[] = ['platform', 'seal', 'all'];

/** `random/<source>`, `random/<bytes>`, `random/<source>/<bytes>`. */
const random: PathForms = ({ segments: [first, second], body }) => {
  const named = first !== undefined && sources.includes(first) ? first : undefined;
  const source = named ?? textOf(body['source']) ?? 'platform';
  const bytes = (named === undefined ? first : second) ?? textOf(body['bytes']) ?? '32';
  return [source, bytes, `${source}/${bytes}`];
};

/** `export/<type>/<name>/<version>`, and the same for the other form: every version that will be shown. */
const exporting: PathForms = async ({ segments: [first, name = '', version], body, engine }) => {
  const { versions } = await engine.readKey(name);
  const latest = versions.at(-1)?.version;
  const asked = version ?? textOf(body['version']);
  const shown = versions.map((each) => each.version).filter((each) => asked === undefined || each === Number(asked));
  if (asked === 'latest' && latest !== undefined) shown.push(latest);
  const forms = new Set(shown.map(String));
  if (latest !== undefined && shown.includes(latest)) forms.add('latest');
  return [...forms].map((each) => `${first}/${name}/${each}`);
};

const pathForms: ReadonlyMap<string, PathForms> = new Map([
  ['sign', signing],
  ['verify', signing],
  ['hmac', hmac],
  ['hash', hash],
  ['cmac', cmac],
  ['random', random],
  ['export', exporting],
  ['byok-export', exporting],
]);

/** A policy's name counts without case, so a request may name one that is denied in other letters. */
const policyPath = /^(sys\/polic(?:y|ies\/acl))\/([^/]+)$/;

/**
 * Further paths that a request comes to: those that would have named the values it uses. Whoever is denied one of them is refused
 * the request, however it was spelled (decision 29).
 * @throws TransitError `not_found` where the key decides and is not there; AccessError `invalid_request`
 */
export async function effectivePaths({ engines }: Service, { path, params, body }: Call): Promise<readonly string[]> {
  const [, policies, name] = policyPath.exec(path) ?? [];
  if (name !== undefined) return [`${policies}/${policyName(name)}`];
  const mount = params['mount'] ?? '';
  const engine = engines.get(mount);
  const [word = '', ...segments] = path.slice(mount.length + 1).split('/');
  const forms = pathForms.get(word);
  if (engine === undefined || forms === undefined) return [];
  return (await forms({ segments, body, engine })).map((form) => `${mount}/${word}/${form}`);
}

/** The path's value alone when it has one; else what the body gives; else the default. */
function givenOr(byDefault: string, inPath: string | undefined, ...inBody: readonly (string | undefined)[]): string[] {
  if (inPath !== undefined) return [inPath];
  const given = inBody.filter((value) => value !== undefined);
  return inBody[0] === undefined ? [byDefault, ...given] : given;
}

/** A member as an operation reads a text: numbers too; empty and absent are the same. */
function textOf(value: JsonValue | undefined): string | undefined {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

const memberOf = (value: JsonValue, name: string): JsonValue | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.hasOwn(value, name)
    ? (value as Body)[name]
    : undefined;
