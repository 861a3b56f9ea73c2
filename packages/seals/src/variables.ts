/** Environment variables, with the names that the cloud providers' own tools use. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** Leaves out empty variables: the providers' own tools take them as absent. */
export const withoutEmpty = (variables: Variables): Variables =>
  Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''));
