import { RefusedError } from '@transitd/client';
import { type End, unlessRefused } from './end.ts';

/** A policy of the source that concerns transit, and what becomes of it. */
export interface PolicyMove {
  readonly name: string;
  readonly text: string;
  /** `differs`: a policy of this name with another text is at the target, and stays. */
  readonly state: 'missing' | 'equal' | 'differs';
}

/** Every service has these policies; they are not moved. */
const builtIn = new Set(['root', 'default']);

/**
 * Returns the policies of the source that concern one of the mounts; undefined if the token may not list policies.
 * @throws RefusedError, UnansweredError
 */
export async function transitPolicies(
  { source, target }: { readonly source: End; readonly target: End },
  mounts: readonly string[],
): Promise<readonly PolicyMove[] | undefined> {
  const names = (await unlessRefused(source.client.sys.policies()))?.data.keys;
  if (names === undefined) return undefined;
  const moves: PolicyMove[] = [];
  for (const name of names.filter((one) => !builtIn.has(one))) {
    const text = (await unlessRefused(source.client.sys.policy(name)))?.data.policy;
    if (text === undefined || !concerns(text, mounts)) continue;
    const present = (await unlessRefused(target.client.sys.policy(name)))?.data.policy;
    moves.push({ name, text, state: present === undefined ? 'missing' : present.trim() === text.trim() ? 'equal' : 'differs' });
  }
  return moves;
}

/** Writes a policy. Returns the reason if the target refuses its text. */
export async function writePolicy({ client }: End, { name, text }: PolicyMove): Promise<string | undefined> {
  try {
    await client.sys.writePolicy(name, text);
    return undefined;
  } catch (error) {
    if (error instanceof RefusedError) return error.message;
    throw error;
  }
}

/** Returns whether a rule of a policy can match a path below one of the mounts. Comments count as rules: better one policy too many. */
export function concerns(text: string, mounts: readonly string[]): boolean {
  const paths = [...text.matchAll(/"((?:[^"\\\n]|\\.)*)"\s*(?::\s*)?\{/g)].map(([, path = '']) => path);
  return paths.some((path) => mounts.some((mount) => mayMatch(path.replace(/^\//, ''), mount)));
}

/** Compares segment by segment. `+` and templates match any segment, `*` at the end everything. */
function mayMatch(rule: string, mount: string): boolean {
  const [segments, wanted] = [rule.split('/'), mount.split('/')];
  for (const [at, segment] of wanted.entries()) {
    const own = segments[at];
    if (own === undefined) return false;
    if (at === segments.length - 1 && own.endsWith('*')) return segment.startsWith(own.slice(0, -1));
    if (own !== '+' && !own.includes('{{') && own !== segment) return false;
  }
  return segments.length > wanted.length;
}
