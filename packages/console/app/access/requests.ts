/** The verbs of the API, each with the capability that it needs. */
export const verbs = [
  { verb: 'GET', capability: 'read' },
  { verb: 'LIST', capability: 'list' },
  { verb: 'POST or PUT (existing)', capability: 'update' },
  { verb: 'POST or PUT (new)', capability: 'create' },
  { verb: 'DELETE', capability: 'delete' },
  { verb: 'sudo path', capability: 'sudo' },
] as const;

/** Returns the path as the API takes it: below `/v1/`, and with a slash at the end for a list. */
export function pathIn(typed: string, capability: string): string {
  const path = typed.trim().replace(/^(?:https?:\/\/[^/]+)?\/*(?:v1\/)?/, '');
  return capability === 'list' && !path.endsWith('/') ? `${path}/` : path;
}
