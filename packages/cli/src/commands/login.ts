import type { AuthCalls, Issued } from '@transitd/client';
import { StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { storeToken } from '../session/token-file.ts';
import { promptHidden, secretFrom } from '../terminal/input.ts';
import { membersOf } from '../terminal/members.ts';
import { serverOptions } from '../terminal/options.ts';
import { rowsOf } from '../terminal/table.ts';

interface LoginOptions {
  readonly method: string;
  readonly path?: string;
  readonly store: boolean;
  readonly tokenOnly?: true;
  readonly field?: string;
}

/** The credentials among the arguments. */
interface Given {
  readonly role: string | undefined;
  readonly name: string | undefined;
  /** @throws StartError if the value is missing */
  required(name: string): string;
  /** Returns the given value, or prompts for it without echo. */
  secret(name: string): Promise<string>;
}

/** How to log in with each auth method except `token`. */
const logins: Readonly<Record<string, (auth: AuthCalls, given: Given, at: { readonly path?: string }) => Promise<Issued>>> = {
  userpass: async (auth, given, at) =>
    auth.userpass({ username: given.required('username'), password: await given.secret('password'), ...at }),
  approle: async (auth, given, at) =>
    auth.approle({ roleId: given.required('role_id'), secretId: await given.secret('secret_id'), ...at }),
  jwt: async (auth, { role, secret }, at) => auth.jwt({ jwt: await secret('jwt'), ...(role !== undefined && { role }), ...at }),
  kubernetes: async (auth, given, at) => auth.kubernetes({ role: given.required('role'), jwt: await given.secret('jwt'), ...at }),
  cert: (auth, { name }, at) => auth.cert({ ...(name !== undefined && { name }), ...at }),
};

/** Their names in a sentence: `a, b or c`. */
export const loginMethods = Object.keys(logins)
  .join(', ')
  .replace(/, (\w+)$/, ' or $1');

/** `login`: gets a token from an auth method and stores it for later commands. */
export function loginCommand(program: Command, { serverAction }: Runner): void {
  serverOptions(program.command('login'))
    .description('log in and store the token for later commands')
    .argument(
      '[data...]',
      'a token as - (standard input) or @file, or credentials such as username=me password=@file; prompts for a missing secret',
    )
    .option('--method <method>', `auth method: token, ${loginMethods}`, 'token')
    .option('--path <path>', 'mount path of the auth method (default: the name of the method)')
    .option('--no-store', 'print the token instead of storing it')
    .option('--token-only', 'print only the token and do not store it')
    .option('--field <name>', 'print only this field of the response')
    .action(serverAction(login));
}

async function login(session: Session, data: readonly string[], options: LoginOptions): Promise<void> {
  const { output } = session;
  const answer = await issuedToken(session, data, options);
  const { auth } = answer;
  const stores = options.store && options.tokenOnly !== true;
  if (stores) {
    storeToken(session.tokenFile, auth.client_token);
  }
  output.warnings(answer);
  if (options.tokenOnly === true) return output.field([['token', auth.client_token]], 'token');
  if (options.field !== undefined) return output.field(rowsOf(answer), options.field);
  const rows = rowsOf(answer);
  // A stored token need not be printed: output stays in scrollback buffers and logs.
  output.rows(stores ? rows.filter(([name]) => name !== 'token') : rows, answer);
  if (stores && output.format === 'table') output.line(`\nLogged in. The token is stored in ${session.tokenFile}.`);
  if (stores && session.tokenFromEnvironment)
    output.notice(
      'warning: a token in the environment takes precedence over the stored one; unset the variable to use the stored token',
    );
}

/** Returns the token that the method issues; for the method `token`, looks up the given token. @throws StartError */
async function issuedToken(session: Session, data: readonly string[], { method, path }: LoginOptions): Promise<Issued> {
  const { client, sources } = session;
  const tokenFrom = async (argument: string | undefined): Promise<string> =>
    argument === undefined
      ? promptHidden('Token (will be hidden): ', 'use - to read the token from standard input')
      : secretFrom(argument.replace(/^token=/, ''), 'a token', sources);
  const at = { ...(path !== undefined && { path }) };
  if (method === 'token') {
    const [argument, ...more] = data;
    if (more.length > 0) throw new StartError('the method token takes one argument');
    return tokenLogin(session, await tokenFrom(argument));
  }
  const members = await membersOf(data, sources);
  const logIn = Object.hasOwn(logins, method) ? logins[method] : undefined;
  if (logIn === undefined) throw new StartError(`unknown method ${method}: use token, ${loginMethods}`);
  const given: Given = {
    role: lineOf(members['role']),
    name: lineOf(members['name']),
    required: (name) => {
      const value = lineOf(members[name]);
      if (value === undefined) throw new StartError(`the method ${method} requires ${name}=…`);
      return value;
    },
    secret: async (name) =>
      lineOf(members[name]) ??
      (await promptHidden(`${name} (will be hidden): `, `use ${name}=@file, or ${name}=- for standard input`)),
  };
  return logIn(client.auth, given, at);
}

/** Strips the final newline that editors add; no credential ends with one. */
const lineOf = (value: unknown): string | undefined => (typeof value === 'string' ? value.replace(/\r?\n$/, '') : undefined);

async function tokenLogin({ client }: Session, token: string): Promise<Issued> {
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
