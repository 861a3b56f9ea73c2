import type { TokenNamed } from '@transitd/client';
import { StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { addFields, bool, fieldsIn, oneOf, text, texts, whole } from '../terminal/field-options.ts';
import { secretFrom, textFrom } from '../terminal/input.ts';
import { pairsOf } from '../terminal/members.ts';
import { collect, fieldOption, serverOptions, wrapOption } from '../terminal/options.ts';
import type { Output } from '../terminal/output.ts';
import { rowsOf } from '../terminal/table.ts';

const createFields = {
  policy: texts('name', 'policy of the token; repeatable'),
  ttl: text('duration', 'TTL of the token'),
  explicit_max_ttl: text('duration', 'maximum lifetime, including renewals'),
  period: text('duration', 'make the token periodic: each renewal resets its TTL to this, without a maximum lifetime'),
  display_name: text('name', 'name of the token in the audit log'),
  use_limit: whole('count', 'maximum number of requests'),
  type: oneOf('type', 'token type: service or batch', ['service', 'batch']),
  renewable: bool('whether the token can be renewed: true or false (default: true)'),
};

interface CreateOptions {
  readonly orphan?: true;
  readonly defaultPolicy: boolean;
  readonly metadata?: readonly string[];
  readonly role?: string;
  readonly id?: string;
  readonly wrapTtl?: string;
  readonly field?: string;
}

/** `token`: tokens and their capabilities. */
export function tokenCommands(program: Command, { serverAction }: Runner): void {
  const token = program.command('token').description('create, look up, renew and revoke tokens');

  addFields(wrapOption(token.command('create')), createFields)
    .description('create a token, with at most the rights of the calling token')
    .option('--orphan', 'create a token without a parent; it outlives the calling token')
    .option('--no-default-policy', 'do not attach the policy default')
    .option('--metadata <name=value>', 'metadata recorded in the audit log; repeatable', collect)
    .option('--role <name>', 'token role to create the token with')
    .option('--id <id>', 'token ID to use instead of a random one (- reads standard input, @file reads a file); requires sudo')
    .action(serverAction(createToken));

  fieldOption(token.command('lookup'))
    .description('look up a token (default: the calling token)')
    .argument('[token]', '- or @file to read a token; with --accessor, the accessor')
    .option('--self', 'use the calling token')
    .option('--accessor', 'the argument is an accessor')
    .action(
      serverAction(async (session, argument: string | undefined, options: TokenSelection & { field?: string }) => {
        const answer = await session.client.auth.token.look(await selectedToken(session, argument, options));
        showKnown(session.output, answer, { ...options, token: 'id' });
      }),
    );

  fieldOption(token.command('renew'))
    .description('renew a token (default: the calling token)')
    .argument('[token]', '- or @file to read a token; with --accessor, the accessor')
    .option('--self', 'use the calling token')
    .option('--accessor', 'the argument is an accessor')
    .option('--increment <duration>', 'requested TTL')
    .action(
      serverAction(
        async (session, argument: string | undefined, options: TokenSelection & { increment?: string; field?: string }) => {
          const selected = await selectedToken(session, argument, options);
          const answer = await session.client.auth.token.renew(selected, options.increment);
          showKnown(session.output, answer, { ...options, token: 'token' });
        },
      ),
    );

  serverOptions(token.command('revoke'))
    .description('revoke a token and its children')
    .argument('[token]', '- or @file to read a token; with --accessor, the accessor')
    .option('--self', 'use the calling token')
    .option('--accessor', 'the argument is an accessor')
    .option('--mode <mode>', 'orphan: keep the children of the token')
    .action(
      serverAction(async (session, argument: string | undefined, options: TokenSelection & { mode?: string }) => {
        const { client, output } = session;
        if (argument === undefined && options.self !== true)
          throw new StartError('no token to revoke: use - or @FILE to read it, or --self for the calling token');
        const selected = await selectedToken(session, argument, options);
        if (options.mode === undefined)
          return output.done(await client.auth.token.revoke(selected), 'Revoked the token, if it existed.');
        if (options.mode !== 'orphan') throw new StartError('--mode must be orphan');
        if (selected === undefined || 'accessor' in selected)
          throw new StartError('--mode orphan requires the token, not --self or --accessor');
        output.done(await client.auth.token.revokeOrphan(selected.token), 'Revoked the token and kept its children.');
      }),
    );

  fieldOption(token.command('capabilities'))
    .description('show the capabilities of a token on a path (default: the calling token)')
    .argument('<path-or-token>', 'the path; with two arguments, - or @file to read the token')
    .argument('[path]', 'path below /v1/')
    .action(
      serverAction(
        async ({ client, output, sources }, first: string, second: string | undefined, options: { field?: string }) => {
          const token = second === undefined ? undefined : await secretFrom(first, 'a token', sources);
          const answer = await client.sys.capabilities(second ?? first, token);
          if (options.field !== undefined) return output.answer(answer, options);
          if (output.format === 'json') output.json(answer.data.capabilities);
          else output.line(answer.data.capabilities.join(', '));
        },
      ),
    );
}

async function createToken({ client, output, sources }: Session, options: CreateOptions): Promise<void> {
  const { policy: policies, use_limit: num_uses, ...fields } = fieldsIn(createFields, options);
  const { orphan, role } = options;
  if (orphan === true && role !== undefined)
    throw new StartError('--orphan cannot be used with --role: the role decides whether its tokens are orphans');
  const request = {
    ...(options.id !== undefined && { id: await secretFrom(options.id, 'a token', sources) }),
    ...(policies !== undefined && { policies }),
    ...fields,
    ...(num_uses !== undefined && { num_uses }),
    ...(!options.defaultPolicy && { no_default_policy: true }),
    ...(options.metadata !== undefined && { meta: pairsOf('--metadata', options.metadata) }),
  };
  const { wrapTtl } = options;
  const wrapped = { ...(wrapTtl !== undefined && { wrapTtl }) };
  const { token } = client.auth;
  const answer = await (orphan === true
    ? token.createOrphan(request, wrapped)
    : token.create(request, { ...wrapped, ...(role !== undefined && { role }) }));
  output.answer(answer, options);
}

interface TokenSelection {
  readonly self?: true;
  readonly accessor?: true;
}

/**
 * Prints the response about a token that the caller has, as rows without that token: output stays in scrollback buffers and journals.
 * @param options.token - the row of the token, which `field` and JSON still show
 */
function showKnown(
  output: Output,
  answer: unknown,
  options: { readonly field?: string | undefined; readonly token: string },
): void {
  if (output.format === 'json' || options.field !== undefined) {
    output.answer(answer, options);
    return;
  }
  output.warnings(answer);
  output.rows(rowsOf(answer).filter(([name]) => name !== options.token));
}

/** Returns the named token or accessor; undefined for the calling token. @throws StartError */
async function selectedToken(
  { sources }: Session,
  argument: string | undefined,
  { self, accessor }: TokenSelection,
): Promise<TokenNamed | undefined> {
  if (self === true && argument !== undefined) throw new StartError('use either a token or --self, not both');
  if (argument === undefined) {
    if (accessor === true) throw new StartError('--accessor requires an accessor as the argument');
    return undefined;
  }
  if (accessor === true) return { accessor: await textFrom(argument, sources) };
  return { token: await secretFrom(argument, 'a token', sources) };
}
