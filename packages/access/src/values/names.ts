/** The name of a user or a role as login methods store and find it: without case. Authorization, quotas and audit use this form too. */
export const loginName = (written: string): string => written.toLowerCase();
