import { StartError } from '@transitd/process';
import type { Command } from 'commander';
import { collect, wholeNumber } from './options.ts';

/** An option that sets a field of a request. */
interface FieldOption<T> {
  /** @param name - of the option, such as `--key-size` */
  readonly add: (command: Command, name: string) => Command;
  /** Returns the value of the field. @param given - the value of the option @throws StartError */
  readonly read: (given: unknown, name: string) => T;
}

/** Options by the fields that they set: `key_size` is set by `--key-size`. */
export type FieldOptions = Readonly<Record<string, FieldOption<unknown>>>;

/** The fields that options set. */
export type Fields<O extends FieldOptions> = {
  readonly [Name in keyof O]?: O[Name] extends FieldOption<infer T> ? T : never;
};

const asGiven = (given: unknown) => given as never; // commander has parsed it

export const text = (value: string, about: string): FieldOption<string> => ({
  add: (command, name) => command.option(`${name} <${value}>`, about),
  read: asGiven,
});

/** A repeatable option. */
export const texts = (value: string, about: string): FieldOption<readonly string[]> => ({
  add: (command, name) => command.option(`${name} <${value}>`, about, collect),
  read: asGiven,
});

export const whole = (value: string, about: string): FieldOption<number> => ({
  add: (command, name) => command.option(`${name} <${value}>`, about, wholeNumber),
  read: asGiven,
});

export const flag = (about: string): FieldOption<true> => ({
  add: (command, name) => command.option(name, about),
  read: asGiven,
});

export const oneOf = <T extends string>(value: string, about: string, allowed: readonly [T, T]): FieldOption<T> => ({
  ...text(value, about),
  read: (given, name) => {
    const found = allowed.find((one) => one === given);
    if (found === undefined) throw new StartError(`${name} must be ${allowed.join(' or ')}`);
    return found;
  },
});

export const bool = (about: string): FieldOption<boolean> => {
  const { add, read } = oneOf('bool', about, ['true', 'false']);
  return { add, read: (given, name) => read(given, name) === 'true' };
};

const nameOf = (field: string): string => `--${field.replaceAll('_', '-')}`;

/** Adds the options to a command, in their order. */
export const addFields = (command: Command, declared: FieldOptions): Command =>
  Object.entries(declared).reduce((all, [field, { add }]) => add(all, nameOf(field)), command);

/** Returns the fields that the given options set. @param options - those of a command to which they were added @throws StartError */
export function fieldsIn<O extends FieldOptions>(declared: O, options: object): Fields<O> {
  const fields = Object.entries(declared).flatMap(([field, { read }]) => {
    const given: unknown = Reflect.get(
      options,
      field.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
    );
    return given === undefined ? [] : [[field, read(given, nameOf(field))]];
  });
  return Object.fromEntries(fields) as Fields<O>;
}
