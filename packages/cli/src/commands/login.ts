import type { Issued } from '@transitd/client';
import { StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { keepToken } from '../session/token-file.ts';
import { hiddenLine, secretFrom } from '../terminal/input.ts';
import { membersOf } from '../terminal/members.ts';
import { asksServer } from '../terminal/options.ts';
import { rowsOf } from '../terminal/table.ts';

interface LoginOptions {
  readonly method: string;
  readonly path?: string;
  readonly store: boolean;
  readonly tokenOnly?: true;
  readonly field?: string;
}

/** `login`: a token by one of the methods, kept for the commands that follow. */
export function loginCommand(program: Command, { asking }: Runner): void {
  asksServer(program.command('login'))
    .description('get a token, and keep it for the commands that follow')
    .argument(
      '[data...]',
      '- or @file for a token, else what the method needs: username=me password=@file; what is secret is asked for',
    )
    .option('--method <method>', 'token, userpass, approle or jwt', 'token')
    .option('--path <path>', 'where the method is enabled; its name unless given')
    .option('--no-store', 'keep nothing, and show the token')
    .option('--token-only', 'keep nothing, and show the token alone')
    .option('--field <name>', 'show this field of the answer alone')
    .action(asking(login));
}

async function login(session: Session, data: readonly string[], options: LoginOptions): Promise<void> {
  const { output } = session;
  const answer = await loggedIn(session, data, options);
  const { auth } = answer;
  const keeps = options.store && options.tokenOnly !== true;
  if (keeps) {
    keepToken(session.tokenFile, auth.client_token);
  }
  output.warnings(answer);
  if (options.tokenOnly === true) return output.field([['token', auth.client_token]], 'token');
  if (options.field !== undefined) return output.field(rowsOf(answer), options.field);
  const rows = rowsOf(answer);
  // A token that is kept needs no showing: what is shown stays in scrollbacks and logs.
  output.rows(keeps ? rows.filter(([name]) => name !== 'token') : rows, answer);
  if (keeps && output.format === 'table') output.line(`\nLogged in; the token is kept in ${session.tokenFile}.`);
  if (keeps && session.tokenIsGiven)
    output.remark('warning: a variable of the environment names another token, which goes before the kept one');
}

/** The token that the method gives, or, for a token that is there already, what it is. @throws StartError */
async function loggedIn(session: Session, data: readonly string[], { method, path }: LoginOptions): Promise<Issued> {
  const { client, sources } = session;
  const tokenFrom = async (given: string | undefined): Promise<string> =>
    given === undefined
      ? hiddenLine('Token (will be hidden): ', 'give - to read the token from standard input')
      : secretFrom(given.replace(/^token=/, ''), 'a token', sources);
  const at = { ...(path !== undefined && { path }) };
  if (method === 'token') {
    const [given, ...more] = data;
    if (more.length > 0) throw new StartError('a login by token takes the token alone');
    return known(session, await tokenFrom(given));
  }
  const members = await membersOf(data, sources);
  /** A value that was given, or is asked for where nobody sees it. */
  const secret = async (name: string): Promise<string> =>
    lineOf(members[name]) ??
    (await hiddenLine(`${name} (will be hidden): `, `give ${name}=@file, or ${name}=- for standard input`));
  const needed = (name: string): string => {
    const value = lineOf(members[name]);
    if (value === undefined) throw new StartError(`the method ${method} needs ${name}=…`);
    return value;
  };
  const role = lineOf(members['role']);
  switch (method) {
    case 'userpass':
      return client.auth.userpass({ username: needed('username'), password: await secret('password'), ...at });
    case 'approle':
      return client.auth.approle({ roleId: needed('role_id'), secretId: await secret('secret_id'), ...at });
    case 'jwt':
      return client.auth.jwt({ jwt: await secret('jwt'), ...(role !== undefined && { role }), ...at });
    default:
      throw new StartError(`there is no method ${method}: token, userpass, approle and jwt can log in`);
  }
}

/** Editors end files with a line end, which no credential has. */
const lineOf = (value: unknown): string | undefined => (typeof value === 'string' ? value.replace(/\r?\n$/, '') : undefined);

async function known({ client }: Session, token: string): Promise<Issued> {
  client.token = token;
  const answer = await client.auth.token.look();
  const { data } = answer;
  return {
    ...answer,
    data: null,
    auth: {
      client_token: token,
      accessor: data.accessor,
      policies: data.policies,
      token_policies: data.policies,
      metadata: data.meta,
      lease_duration: data.ttl,
      renewable: data.renewable,
      token_type: data.type === 'batch' ? 'batch' : 'service',
      orphan: data.orphan,
      num_uses: data.num_uses,
    },
  };
}
