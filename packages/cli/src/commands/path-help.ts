import { StartError } from '@transitd/process';
import type { Command } from 'commander';
import type { Runner } from '../runner/runner.ts';
import { serverOptions } from '../terminal/options.ts';

interface Operation {
  readonly summary?: string;
  readonly parameters?: readonly Field[];
  readonly requestBody?: { readonly content?: Readonly<Record<string, { readonly schema?: Schema }>> };
}

interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
}

interface Field {
  readonly name: string;
  readonly in: string;
  readonly description?: string;
}

interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** `path-help`: the operations of a path and their fields, from the document that the server makes for the calling token. */
export function pathHelpCommand(program: Command, { serverAction }: Runner): void {
  serverOptions(program.command('path-help'))
    .description('show the operations of a path and their fields')
    .argument('<path>', 'path below /v1/, for example transit/encrypt/orders')
    .action(
      serverAction(async ({ client, output }, path: string) => {
        const { paths } = await client.request<ApiDocument>('GET', 'sys/internal/specs/openapi');
        const wanted = path.replace(/^\/+|\/+$/g, '');
        const found = Object.keys(paths).find((template) => matches(template, wanted));
        if (found === undefined) throw new StartError(`the server has no path ${wanted}, or the token has no right on its mount`);
        const operations = paths[found] ?? {};
        if (output.format === 'json') return output.json({ [found]: operations });
        output.line(helpText(found, operations));
      }),
    );
}

/** Compares a path with a template such as `/transit/keys/{name}`. A parameter stands for one segment. */
export function matches(template: string, path: string): boolean {
  const [segments, given] = [template.replace(/^\/+|\/+$/g, '').split('/'), path.split('/')];
  return segments.length === given.length && segments.every((segment, at) => /^\{.*\}$/.test(segment) || segment === given[at]);
}

const methods = ['get', 'post', 'delete'] as const;

function helpText(path: string, operations: Readonly<Record<string, unknown>>): string {
  const shared = (operations['parameters'] ?? []) as readonly Field[];
  const texts = methods.flatMap((method) => {
    const operation = operations[method] as Operation | undefined;
    if (operation === undefined) return [];
    const fields = [...shared, ...(operation.parameters ?? [])].map(({ name, in: place, description }) =>
      line(`${name} (${place})`, description),
    );
    const body = Object.values(operation.requestBody?.content ?? {})[0]?.schema?.properties ?? {};
    const members = Object.entries(body).map(([name, { type, description }]) =>
      line(type === undefined ? name : `${name} (${type})`, description),
    );
    return [[`${method.toUpperCase()}  ${operation.summary ?? ''}`, ...fields, ...members].join('\n')];
  });
  return [path, ...texts].join('\n\n');
}

const line = (name: string, description = ''): string => `    ${name.padEnd(34)} ${description}`.trimEnd();
