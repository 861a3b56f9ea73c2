import { plainReply, type RequestPath, type Verb } from '@transitd/http';
import type { GuardedOperation, Operation, Route } from '../operation/operation.ts';

/** Returns whether a request asks what its path is for, as `path-help` of the peers' command line does, instead of reading it. */
export const asksForHelp = (
  { verb, path }: { readonly verb: Verb | undefined; readonly path: RequestPath },
  { operations }: Route,
): boolean =>
  verb === 'GET' && (path.query.get('help') ?? '') !== '' && Object.values(operations).every(({ access }) => access === 'token');

const helpName = 'help';
export const isHelp = ({ name }: Pick<Operation, 'name'>): boolean => name === helpName;

/** Describes the operations of a path. It needs the right to read the path: a mount that the caller may not use must not show. */
export const helpOn = ({ operations }: Route): GuardedOperation => ({
  name: helpName,
  access: 'token',
  run: () => plainReply({ help: Object.entries(operations).map(helpOf).join('\n') }),
});

function helpOf([verb, { about, takes, byType = {} }]: [string, Operation]): string {
  const described = about === undefined ? Object.entries(byType) : [['', { about, takes }] as const];
  const lines = described.flatMap(([type, each]) => [
    `${verb}${type === '' ? '' : ` (${type})`}: ${each.about}`,
    ...Object.entries(each.takes ?? {}).map(([name, field]) => `    ${name}: ${field.about}`),
  ]);
  return lines.map((line) => `${line}\n`).join('');
}
