/** A change of some members; the others keep their values. */
export type Changed<T> = { readonly [Name in keyof T]?: T[Name] | undefined };

/** The members that a change sets. */
export type Given<T extends object> = Partial<{ readonly [Name in keyof T]: Exclude<T[Name], undefined> }>;

/** Returns the members of a change that have a value; the others keep theirs. */
export const given = <T extends object>(change: T): Given<T> =>
  Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as Given<T>;
