// The imports, comments and literals of a module, by the parser of the bundler: TypeScript 7 has no API.
import { type ESTree, parseSync, Visitor } from 'rolldown/utils';
import type { SourceFile } from './source-files.ts';

/** An import or a re-export. `line` counts from 1. */
export interface Import {
  readonly specifier: string;
  /** `type`: removed before the module runs. `dynamic`: `import('…')`. */
  readonly kind: 'static' | 'type' | 'dynamic';
  readonly line: number;
}

/**
 * A comment, without slashes and stars, or a literal, with an ellipsis for each expression of a template. Consecutive line comments are
 * one. Line breaks inside `text` are kept.
 */
export interface CodeText {
  readonly kind: 'comment' | 'string';
  readonly line: number;
  readonly text: string;
  /** The names of the suites around a test or suite and its own, if the literal is the name of one. */
  readonly testName?: readonly string[];
}

/** @throws Error if the module has a syntax error */
function parse({ path, text }: SourceFile) {
  const { program, comments, errors } = parseSync(path, text);
  const [error] = errors;
  if (error !== undefined) throw new Error(`${path}: ${error.message}`);
  const breaks = [...text.matchAll(/\n/g)].map(({ index }) => index);
  const lineAt = (offset: number): number => {
    const after = breaks.findIndex((at) => at >= offset);
    return (after === -1 ? breaks.length : after) + 1;
  };
  return { program, comments, lineAt };
}

/** Returns every import of a module, in order. */
export function importsOf(file: SourceFile): Import[] {
  const { program, lineAt } = parse(file);
  const found: Import[] = [];
  const add = (kind: Import['kind'], source: object | null): void => {
    if (source !== null && 'value' in source && 'start' in source)
      found.push({ specifier: String(source.value), kind, line: lineAt(Number(source.start)) });
  };
  new Visitor({
    ImportDeclaration: ({ importKind, source }) => add(importKind === 'type' ? 'type' : 'static', source),
    ExportNamedDeclaration: ({ exportKind, source }) => add(exportKind === 'type' ? 'type' : 'static', source),
    ExportAllDeclaration: ({ exportKind, source }) => add(exportKind === 'type' ? 'type' : 'static', source),
    ImportExpression: ({ source }) => add('dynamic', source),
    TSImportType: ({ source }) => add('type', source),
  }).visit(program);
  return found;
}

/** Returns the comments and literals of a module, in order. */
export function codeTextsOf(file: SourceFile): CodeText[] {
  const { program, comments, lineAt } = parse(file);
  const source = file.text;
  const texts: (CodeText & { readonly start: number })[] = [];
  let last: { readonly at: number; readonly isLine: boolean } | undefined;
  for (const { type, value, start, end } of comments) {
    const isLine = type === 'Line';
    const before = source.slice(source.lastIndexOf('\n', start) + 1, start);
    const previous = texts.at(-1);
    const text = isLine ? value.trim() : bare(value);
    if (isLine && before.trim() === '' && last?.isLine && previous && /^\n[ \t]*$/.test(source.slice(last.at, start)))
      texts.splice(-1, 1, { ...previous, text: `${previous.text}\n${text}` });
    else texts.push({ kind: 'comment', line: lineAt(start), text, start });
    last = { at: end, isLine: isLine && before.trim() === '' };
  }
  const testNames = new Map<number, readonly string[]>();
  const suites: string[] = [];
  const add = (literal: ESTree.Argument): void => {
    const text = literalOf(literal);
    const testName = testNames.get(literal.start);
    if (text !== undefined)
      texts.push({
        ...{ kind: 'string', line: lineAt(literal.start), text, start: literal.start },
        ...(testName && { testName }),
      });
  };
  const named = ({
    callee,
    arguments: [name],
  }: ESTree.CallExpression): { of: string; name: string; start: number } | undefined => {
    const [of] = /^(?:describe|it|live)\b/.exec(source.slice(callee.start, callee.end)) ?? [];
    const text = name && literalOf(name);
    return of === undefined || name === undefined || text === undefined ? undefined : { of, name: text, start: name.start };
  };
  new Visitor({
    CallExpression: (call) => {
      const test = named(call);
      if (test === undefined) return;
      testNames.set(test.start, [...suites, test.name]);
      if (test.of === 'describe') suites.push(test.name);
    },
    'CallExpression:exit': (call) => {
      if (named(call)?.of === 'describe') suites.pop();
    },
    Literal: add,
    TemplateLiteral: add,
    JSXText: ({ value, start }) => {
      const at = start + value.length - value.trimStart().length;
      if (value.trim() !== '') texts.push({ kind: 'string', line: lineAt(at), text: value.trim(), start: at });
    },
  }).visit(program);
  return texts.sort((a, b) => a.start - b.start).map(({ start: _, ...text }) => text);
}

/** Returns the text of a literal as it is written, with an ellipsis for each expression in it; undefined for other expressions. */
function literalOf(node: ESTree.Argument): string | undefined {
  if (node.type === 'Literal' && typeof node.value === 'string') return node.raw?.slice(1, -1);
  return node.type === 'TemplateLiteral' ? node.quasis.map(({ value }) => value.raw).join('…') : undefined;
}

/** Returns a block comment without its stars, line by line. */
const bare = (comment: string): string =>
  comment
    .split('\n')
    .map((line) => line.replace(/^\s*\*+ ?/, '').trim())
    .join('\n');
