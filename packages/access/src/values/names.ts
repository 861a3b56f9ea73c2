/** Letters, digits and `_ . @ -`: what a path segment, a log line and a policy all hold without escapes. */
export const isRoleName = (name: string): boolean => /^[\w][\w.@-]{0,127}$/.test(name);

/** The name of a user or a role as login methods store and find it: without case. Authorization, quotas and audit use this form too. */
export const loginName = (written: string): string => written.toLowerCase();
