import type { z } from 'zod';

type RawIssue = Parameters<z.core.$ZodErrorMap>[0];

const types: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a section with keys',
  record: 'a section with keys',
};

/**
 * Returns the expected form of a value, as a predicate: `must be a list`. Used for the issues whose schema has no text of its own.
 * Issues about unknown keys are not covered: `faults.ts` reports each of those keys.
 */
export function issueWords(issue: RawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${types[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `must be ${oneOf(issue.values.map(String))}`;
    case 'invalid_union':
      return Array.isArray(issue['options']) ? `must be ${oneOf(issue['options'].map(String))}` : undefined;
    case 'too_small':
      return `must ${limited(issue.origin, `at least ${issue.minimum}`)}`;
    case 'too_big':
      return `must ${limited(issue.origin, `at most ${issue.maximum}`)}`;
    case 'invalid_key':
      return issue.issues[0]?.message;
    default:
      return undefined;
  }
}

const oneOf = (values: readonly string[]): string => (values.length === 1 ? String(values[0]) : `one of ${values.join(', ')}`);

const limited = (origin: string, limit: string): string =>
  origin === 'array' ? `have ${limit} entries` : origin === 'string' ? `have ${limit} characters` : `be ${limit}`;
