import { didYouMean } from '@transitd/access';
import { StartError } from '@transitd/process';
import type { z } from 'zod';
import type { KeyPath } from './source.ts';

/** One fault of a configuration: the key, and what is wrong with it. An empty path is the document. */
export interface Fault {
  readonly path: KeyPath;
  readonly text: string;
  /** The key itself is wrong, not its value. */
  readonly isKey?: boolean;
}

/** The part of a JSON schema that is needed to find the keys of a section. */
export interface SectionSchema {
  readonly properties?: Readonly<Record<string, SectionSchema>>;
  readonly items?: SectionSchema;
  readonly oneOf?: readonly SectionSchema[];
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
}

/** Returns the faults of each issue: one for each unknown key, otherwise one. @param input - the checked configuration */
export const faultsOf = (issues: readonly z.core.$ZodIssue[], input: unknown, schema: SectionSchema): readonly Fault[] =>
  issues.flatMap((issue) => faultsOfIssue(issue, input, schema));

function faultsOfIssue(issue: z.core.$ZodIssue, input: unknown, schema: SectionSchema): readonly Fault[] {
  const path = issue.path.filter((part) => typeof part !== 'symbol');
  const sections = sectionsAt([schema], path);
  if (issue.code === 'unrecognized_keys') {
    const known = sections.flatMap(({ properties = {} }) => Object.keys(properties));
    return issue.keys.map((key) => ({
      path: [...path, key],
      text: `is not a key of the configuration${didYouMean(key, known)}`,
      isKey: true,
    }));
  }
  const value = valueAt(input, path);
  if (value === undefined && path.length > 0) return [{ path, text: `is missing: it ${issue.message}` }];
  const meant = typeof value === 'string' ? didYouMean(value, sections.flatMap(choicesOf)) : '';
  return [{ path, text: `${issue.message}${shown(path, value)}${meant}` }];
}

/** @param placeOf - returns the file, line and column of a fault, or its environment variable; undefined if neither is known */
export function startErrorOf(faults: readonly Fault[], placeOf: (fault: Fault) => string | undefined): StartError {
  const lines = faults.map((fault) => {
    const place = placeOf(fault);
    return `${place === undefined ? '' : `${place}: `}${fault.path.length === 0 ? 'the document' : fault.path.join('.')}: ${fault.text}`;
  });
  const [only] = lines;
  if (lines.length === 1) return new StartError(`configuration: ${only}`);
  return new StartError(`configuration: ${lines.length} faults\n${lines.map((line) => `  ${line}`).join('\n')}`, lines);
}

/** The schemas of the value at a path: several if the section has several types. */
const sectionsAt = (schemas: readonly SectionSchema[], [first, ...rest]: KeyPath): readonly SectionSchema[] => {
  const alternatives = schemas.flatMap((schema) => schema.oneOf ?? [schema]);
  if (first === undefined) return alternatives;
  const below = alternatives.flatMap(({ items, properties }) =>
    typeof first === 'number'
      ? (items ?? [])
      : properties !== undefined && Object.hasOwn(properties, first)
        ? (properties[first] ?? [])
        : [],
  );
  return sectionsAt(below, rest);
};

/** Whether a key takes only a string, in each form of its section. */
export function isTextAt(schema: SectionSchema, path: KeyPath): boolean {
  const found = sectionsAt([schema], path);
  return found.length > 0 && found.every(({ type }) => type === 'string');
}

const choicesOf = ({ enum: values, const: only }: SectionSchema): string[] =>
  [...(values ?? []), only].filter((value) => typeof value === 'string');

const valueAt = (value: unknown, [first, ...rest]: KeyPath): unknown =>
  first === undefined
    ? value
    : valueAt(typeof value === 'object' && value !== null ? Reflect.get(value, first) : undefined, rest);

const shownCharsMax = 60;

/** Returns the wrong value for the error text. Values of the seal are not shown, because a seal key may have been pasted there. */
function shown(path: KeyPath, value: unknown): string {
  const isShown = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
  if (!isShown || ((path[0] === 'seal' || path[0] === 'migrate_seal_from') && path.at(-1) !== 'type')) return '';
  const text = JSON.stringify(value);
  return `, not ${text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}…` : text}`;
}
