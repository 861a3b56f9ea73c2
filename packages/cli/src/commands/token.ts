import type { TokenNamed } from '@transitd/client';
import { StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import type { Session } from '../session/session.ts';
import { secretFrom, textFrom } from '../terminal/input.ts';
import { pairsOf } from '../terminal/members.ts';
import { asksServer, several, showsField, wholeNumber, wraps } from '../terminal/options.ts';
import { rowsOf } from '../terminal/table.ts';

interface CreateOptions {
  readonly policy?: readonly string[];
  readonly ttl?: string;
  readonly explicitMaxTtl?: string;
  readonly period?: string;
  readonly displayName?: string;
  readonly useLimit?: number;
  readonly type?: 'service' | 'batch';
  readonly renewable?: string;
  readonly orphan?: true;
  readonly defaultPolicy: boolean;
  readonly metadata?: readonly string[];
  readonly role?: string;
  readonly id?: string;
  readonly wrapTtl?: string;
  readonly field?: string;
}

/** `token`: what shows who asks. */
export function tokenCommands(program: Command, { asking }: Runner): void {
  const token = program.command('token').description('what shows who asks');

  wraps(token.command('create'))
    .description('make a token that may do no more than the own one')
    .option('--policy <name>', 'policy that it has; may be given several times', several)
    .option('--ttl <duration>', 'how long it lives')
    .option('--explicit-max-ttl <duration>', 'how long it lives at most, renewed or not')
    .option('--period <duration>', 'to what each renewal brings it back, for ever')
    .option('--display-name <name>', 'how the audit calls it')
    .option('--use-limit <count>', 'how many requests it can make', wholeNumber)
    .option('--type <type>', 'service or batch')
    .option('--renewable <bool>', 'true unless given')
    .option('--orphan', 'it lives on when the own token ends')
    .option('--no-default-policy', 'without the policy default')
    .option('--metadata <name=value>', 'remark that the audit shows; may be given several times', several)
    .option('--role <name>', 'by the rules of this role')
    .option('--id <id>', 'the token itself, - for standard input or @file; needs sudo')
    .action(asking(createToken));

  showsField(token.command('lookup'))
    .description('show what a token is; the own one unless given')
    .argument('[token]', '- for standard input or @file; an accessor as it is')
    .option('--self', 'the own token')
    .option('--accessor', 'what is given is its accessor')
    .action(
      asking(async (session, given: string | undefined, options: Named & { field?: string }) => {
        const { client, output } = session;
        const answer = await client.auth.token.look(await namedBy(session, given, options));
        if (output.format === 'json' || options.field !== undefined) return output.answer(answer, options);
        output.warnings(answer);
        // Who asks has the token already; what is shown stays in scrollbacks and logs.
        output.rows(rowsOf(answer).filter(([name]) => name !== 'id'));
      }),
    );

  showsField(token.command('renew'))
    .description('let a token live on; the own one unless given')
    .argument('[token]', '- for standard input or @file; an accessor as it is')
    .option('--self', 'the own token')
    .option('--accessor', 'what is given is its accessor')
    .option('--increment <duration>', 'for how long')
    .action(
      asking(async (session, given: string | undefined, options: Named & { increment?: string; field?: string }) => {
        const named = await namedBy(session, given, options);
        session.output.answer(await session.client.auth.token.renew(named, options.increment), options);
      }),
    );

  asksServer(token.command('revoke'))
    .description('end a token and what was made with it')
    .argument('[token]', '- for standard input or @file; an accessor as it is')
    .option('--self', 'the own token')
    .option('--accessor', 'what is given is its accessor')
    .option('--mode <mode>', 'orphan: what was made with it lives on')
    .action(
      asking(async (session, given: string | undefined, options: Named & { mode?: string }) => {
        const { client, output } = session;
        if (given === undefined && options.self !== true)
          throw new StartError('give the token to revoke, or --self for the own one');
        const named = await namedBy(session, given, options);
        if (options.mode === undefined)
          return output.done(await client.auth.token.revoke(named), 'Revoked the token, if it was one.');
        if (options.mode !== 'orphan') throw new StartError('--mode can be orphan, nothing else');
        if (named === undefined || 'accessor' in named) throw new StartError('--mode orphan needs the token itself');
        output.done(await client.auth.token.revokeOrphan(named.token), 'Revoked the token, and nothing that was made with it.');
      }),
    );

  showsField(token.command('capabilities'))
    .description('show what a token may do at a path; the own one unless given')
    .argument('<path-or-token>', 'the path; when two are given the token, - for standard input or @file')
    .argument('[path]', 'path below /v1/')
    .action(
      asking(async ({ client, output, sources }, first: string, second: string | undefined, options: { field?: string }) => {
        const asked = second === undefined ? undefined : await secretFrom(first, 'a token', sources);
        const answer = await client.sys.capabilities(second ?? first, asked);
        if (options.field !== undefined) return output.answer(answer, options);
        if (output.format === 'json') output.json(answer.data.capabilities);
        else output.line(answer.data.capabilities.join(', '));
      }),
    );
}

async function createToken({ client, output, sources }: Session, options: CreateOptions): Promise<void> {
  const { renewable, type, orphan, role } = options;
  if (renewable !== undefined && renewable !== 'true' && renewable !== 'false')
    throw new StartError('--renewable is true or false');
  if (type !== undefined && type !== 'service' && type !== 'batch') throw new StartError('--type is service or batch');
  if (orphan === true && role !== undefined) throw new StartError('whether tokens of a role are orphans is a matter of the role');
  const request = {
    ...(options.id !== undefined && { id: await secretFrom(options.id, 'a token', sources) }),
    ...(options.policy !== undefined && { policies: options.policy }),
    ...(options.ttl !== undefined && { ttl: options.ttl }),
    ...(options.explicitMaxTtl !== undefined && { explicit_max_ttl: options.explicitMaxTtl }),
    ...(options.period !== undefined && { period: options.period }),
    ...(options.displayName !== undefined && { display_name: options.displayName }),
    ...(options.useLimit !== undefined && { num_uses: options.useLimit }),
    ...(type !== undefined && { type }),
    ...(renewable !== undefined && { renewable: renewable === 'true' }),
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

interface Named {
  readonly self?: true;
  readonly accessor?: true;
}

/** Nothing for the own token. @throws StartError */
async function namedBy(
  { sources }: Session,
  given: string | undefined,
  { self, accessor }: Named,
): Promise<TokenNamed | undefined> {
  if (self === true && given !== undefined) throw new StartError('give a token or --self, not both');
  if (given === undefined) {
    if (accessor === true) throw new StartError('--accessor needs an accessor');
    return undefined;
  }
  if (accessor === true) return { accessor: await textFrom(given, sources) };
  return { token: await secretFrom(given, 'a token', sources) };
}
