import { inPage, type Page } from '@transitd/client';
import { StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { secretFrom } from '../terminal/input.ts';
import { membersOf } from '../terminal/members.ts';
import { pageOptions, serverOptions, wrapOption } from '../terminal/options.ts';

interface ResponseOptions {
  readonly field?: string;
  readonly wrapTtl?: string;
}

const wrapRequest = ({ wrapTtl }: ResponseOptions) => ({ ...(wrapTtl !== undefined && { wrapTtl }) });

/** `read`: GET on a path. */
export function readCommand(program: Command, { serverAction }: Runner): void {
  wrapOption(program.command('read'))
    .description('read data from a path')
    .argument('<path>', 'path below /v1/, for example transit/keys/orders')
    .argument('[parameters...]', 'query parameters, each name=value')
    .action(
      serverAction(async ({ client, output, sources }, path: string, parameters: string[], options: ResponseOptions) => {
        const members = await membersOf(parameters, sources);
        const query = Object.fromEntries(Object.entries(members).map(([name, value]) => [name, String(value)]));
        output.answer(await client.request('GET', path, undefined, { query, ...wrapRequest(options) }), options);
      }),
    );
}

/** `write`: PUT on a path. */
export function writeCommand(program: Command, { serverAction }: Runner): void {
  wrapOption(program.command('write'))
    .description('write data to a path')
    .argument('<path>', 'path below /v1/')
    .argument('[data...]', 'name=value, name=@file or name=- (standard input); @file or - alone is a JSON object')
    .option('-f, --force', 'allow a write without data')
    .action(
      serverAction(
        async ({ client, output, sources }, path: string, data: string[], options: ResponseOptions & { force?: true }) => {
          if (data.length === 0 && options.force !== true)
            throw new StartError('no data to write: pass name=value, or use --force to write without data');
          const body = await membersOf(data, sources);
          const answer = await client.request('PUT', path, body, wrapRequest(options));
          if (options.field === undefined) output.done(answer, `Wrote data to ${path}.`);
          else output.answer(answer, options);
        },
      ),
    );
}

/** `list`: LIST on a path. */
export function listCommand(program: Command, { serverAction }: Runner): void {
  pageOptions(wrapOption(program.command('list')))
    .description('list the names below a path')
    .argument('<path>', 'path below /v1/, for example transit/keys')
    .action(
      serverAction(async ({ client, output }, path: string, options: ResponseOptions & Page) => {
        const answer = await client.request<{ data?: { keys?: readonly string[] } }>('LIST', path, undefined, {
          ...wrapRequest(options),
          ...inPage(options),
        });
        const keys = answer.data?.keys;
        if (keys === undefined || options.field !== undefined) return output.answer(answer, options);
        output.warnings(answer);
        output.names(keys);
      }),
    );
}

/** `delete`: DELETE on a path. */
export function deleteCommand(program: Command, { serverAction }: Runner): void {
  serverOptions(program.command('delete'))
    .description('delete the data at a path')
    .argument('<path>', 'path below /v1/')
    .action(
      serverAction(async ({ client, output }, path: string) => {
        output.done(await client.request('DELETE', path), `Deleted ${path}, if it existed.`);
      }),
    );
}

/** `unwrap`: returns a wrapped response. */
export function unwrapCommand(program: Command, { serverAction }: Runner): void {
  wrapOption(program.command('unwrap'))
    .description('unwrap a wrapped response; works only once per token')
    .argument('[token]', '- or @file to read the wrapping token; default: the calling token')
    .action(
      serverAction(
        async ({ client, output, sources, token: callingToken }, argument: string | undefined, options: ResponseOptions) => {
          const token = argument === undefined ? callingToken : await secretFrom(argument, 'a wrapping token', sources);
          if (token === undefined || token === '') throw new StartError('no wrapping token: use - or @FILE to read it');
          output.answer(await client.sys.wrapping.unwrap(token), options);
        },
      ),
    );
}
