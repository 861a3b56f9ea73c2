import { StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { secretFrom } from '../terminal/input.ts';
import { membersOf } from '../terminal/members.ts';
import { asksServer, wraps } from '../terminal/options.ts';

interface Shown {
  readonly field?: string;
  readonly wrapTtl?: string;
}

const wrapping = ({ wrapTtl }: Shown) => ({ ...(wrapTtl !== undefined && { wrapTtl }) });

/** `read`: what a path answers. */
export function readCommand(program: Command, { asking }: Runner): void {
  wraps(program.command('read'))
    .description('show what a path answers')
    .argument('<path>', 'path below /v1/, such as transit/keys/orders')
    .argument('[parameters...]', 'parameters of the query, name=value each')
    .action(
      asking(async ({ client, output, sources }, path: string, parameters: string[], options: Shown) => {
        const members = await membersOf(parameters, sources);
        const query = Object.fromEntries(Object.entries(members).map(([name, value]) => [name, String(value)]));
        output.answer(await client.request('GET', path, undefined, { query, ...wrapping(options) }), options);
      }),
    );
}

/** `write`: data for a path. */
export function writeCommand(program: Command, { asking }: Runner): void {
  wraps(program.command('write'))
    .description('send data to a path')
    .argument('<path>', 'path below /v1/')
    .argument('[data...]', 'name=value, name=@file, name=- for standard input, - or @file for a whole JSON object')
    .option('-f, --force', 'also without any data')
    .action(
      asking(async ({ client, output, sources }, path: string, data: string[], options: Shown & { force?: true }) => {
        if (data.length === 0 && options.force !== true) throw new StartError('there is no data to write: give some, or --force');
        const body = await membersOf(data, sources);
        const answer = await client.request('PUT', path, body, wrapping(options));
        if (options.field === undefined) output.done(answer, `Written to ${path}.`);
        else output.answer(answer, options);
      }),
    );
}

/** `list`: the names below a path. */
export function listCommand(program: Command, { asking }: Runner): void {
  wraps(program.command('list'))
    .description('show the names below a path')
    .argument('<path>', 'path below /v1/, such as transit/keys')
    .action(
      asking(async ({ client, output }, path: string, options: Shown) => {
        const answer = await client.request<{ data?: { keys?: readonly string[] } }>('LIST', path, undefined, wrapping(options));
        const keys = answer.data?.keys;
        if (keys === undefined || options.field !== undefined) return output.answer(answer, options);
        output.warnings(answer);
        output.names(keys);
      }),
    );
}

/** `delete`: the end of what is at a path. */
export function deleteCommand(program: Command, { asking }: Runner): void {
  asksServer(program.command('delete'))
    .description('remove what is at a path')
    .argument('<path>', 'path below /v1/')
    .action(
      asking(async ({ client, output }, path: string) => {
        output.done(await client.request('DELETE', path), `Deleted ${path}.`);
      }),
    );
}

/** `unwrap`: what was wrapped. */
export function unwrapCommand(program: Command, { asking }: Runner): void {
  wraps(program.command('unwrap'))
    .description('show what was wrapped; this once')
    .argument('[token]', 'the wrapping token, - for standard input or @file; the calling token unless given')
    .action(
      asking(async ({ client, output, sources, token: own }, given: string | undefined, options: Shown) => {
        const token = given === undefined ? own : await secretFrom(given, 'a wrapping token', sources);
        if (token === undefined || token === '') throw new StartError('there is no wrapping token: give - or @FILE to read it');
        output.answer(await client.sys.wrapping.unwrap(token), options);
      }),
    );
}
