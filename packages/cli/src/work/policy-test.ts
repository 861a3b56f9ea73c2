import { readFileSync } from 'node:fs';
import { AccessError, isCapability, policyPermits } from '@transitd/access';
import { parsePath, RequestError } from '@transitd/http';
import { exitCode, StartError } from '@transitd/process';

/** What a policy says to one request. */
export interface PolicyQuestion {
  readonly file: string;
  /** Below `/v1/`. */
  readonly path: string;
  readonly capability: string;
  /** `name=value` each. */
  readonly parameters: readonly string[];
}

/**
 * Asks a policy in a file, and prints `allowed` or `denied`.
 * @returns the exit code: 0 when it allows the request, 2 when it does not
 * @throws StartError for a file that is no policy, or a request that cannot be made
 */
export function testPolicy({ file, path, capability, parameters }: PolicyQuestion): number {
  if (!isCapability(capability)) throw new StartError(`${capability} is no capability`);
  try {
    const { path: asked, trailingSlash } = parsePath(`/v1/${path.replace(/^\//, '')}`);
    if (trailingSlash && capability !== 'list') throw new StartError('only the path of a list may end with a slash');
    const question = { path: asked, capability, parameters: membersOf(parameters) };
    const allowed = policyPermits(readFileSync(file, 'utf8'), question, Date.now());
    console.log(allowed ? 'allowed' : 'denied');
    return allowed ? exitCode.ok : exitCode.denied;
  } catch (error) {
    if (error instanceof AccessError || error instanceof RequestError) throw new StartError(error.message || 'the path is empty');
    if (error instanceof Error && 'code' in error) throw new StartError(`${file} cannot be read: ${error.code}`);
    throw error;
  }
}

/** The members that a body would have: `true`, `7`, `["a"]` as in JSON, anything else as a text. */
function membersOf(parameters: readonly string[]): Readonly<Record<string, unknown>> {
  const members: Record<string, unknown> = Object.create(null);
  for (const parameter of parameters) {
    const at = parameter.indexOf('=');
    if (at <= 0) throw new StartError(`${JSON.stringify(parameter)} is not of the form name=value`);
    members[parameter.slice(0, at)] = readValue(parameter.slice(at + 1));
  }
  return members;
}

function readValue(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
