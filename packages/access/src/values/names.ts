/**
 * Returns whether a name has only letters, digits and `_ . @ -`, which need no escape in a path segment, a log line or a policy.
 */
export const isRoleName = (name: string): boolean => /^[\w][\w.@-]{0,127}$/.test(name);

/**
 * Returns the canonical name of a user or role, in lower case. Auth methods store this form; authorization, quotas and audit use
 * it too.
 */
export const loginName = (written: string): string => written.toLowerCase();
