import { readFileSync } from 'node:fs';
import { AccessError, isCapability, policyPermits } from '@transitd/access';
import { parsePath, RequestError } from '@transitd/http';
import { exitCode, StartError } from '@transitd/process';
import { print } from '../terminal/print.ts';

/** A policy file and a request to test it with. */
export interface PolicyTest {
  readonly file: string;
  /** Below `/v1/`. */
  readonly path: string;
  readonly capability: string;
  /** Each `name=value`. */
  readonly parameters: readonly string[];
}

/**
 * Tests whether a policy file allows a request, and prints `allowed` or `denied`.
 * @returns the exit code: 0 if the policy allows the request, 2 if not
 * @throws StartError for an invalid policy file or request
 */
export function testPolicy({ file, path, capability, parameters }: PolicyTest): number {
  if (!isCapability(capability))
    throw new StartError(`unknown capability ${capability}: use create, read, update, patch, delete, list or sudo`);
  try {
    const { path: requestPath, trailingSlash } = parsePath(`/v1/${path.replace(/^\//, '')}`);
    if (trailingSlash && capability !== 'list') throw new StartError('only a path to list may end with a slash');
    const request = { path: requestPath, capability, parameters: membersOf(parameters) };
    const allowed = policyPermits(readFileSync(file, 'utf8'), request, Date.now());
    print(allowed ? 'allowed' : 'denied');
    return allowed ? exitCode.ok : exitCode.denied;
  } catch (error) {
    if (error instanceof AccessError) throw new StartError(`${file}: ${error.message}`);
    if (error instanceof RequestError) throw new StartError(error.message || 'the path is empty');
    if (error instanceof Error && 'code' in error) throw new StartError(`${file} cannot be read: ${error.code}`);
    throw error;
  }
}

/** Returns the members of the request body: values that are JSON, such as `true`, `7` or `["a"]`, are parsed; others are strings. */
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
