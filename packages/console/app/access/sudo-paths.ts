import { flagIn, type Json, objectIn } from '../api/json.ts';

/** The method in the document of the API for each capability. A request that lists is a GET there. */
const methods: Readonly<Record<string, string>> = {
  read: 'get',
  list: 'get',
  update: 'post',
  create: 'post',
  delete: 'delete',
};

/** Returns whether a request needs `sudo` besides its capability. @param document - of the API, as the node describes itself */
export function needsSudo(document: Json, path: string, capability: string): boolean {
  const method = methods[capability];
  if (method === undefined) return false;
  const paths = objectIn(document['paths']);
  // A path without parameters counts before one with them, as in the node's own table of routes.
  const template = [`/${trimmed(path)}`, ...Object.keys(paths).filter((name) => matches(name, path))].find((name) =>
    Object.hasOwn(paths, name),
  );
  return template !== undefined && flagIn(objectIn(objectIn(paths[template])[method])['x-vault-sudo']);
}

const trimmed = (path: string): string => path.replace(/\/+$/, '');

function matches(template: string, path: string): boolean {
  const [wanted, given] = [template.slice(1).split('/'), trimmed(path).split('/')];
  return wanted.length === given.length && wanted.every((part, index) => part.startsWith('{') || part === given[index]);
}
