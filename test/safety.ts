/**
 * Begins the message of an assertion about lost or leaked data, or about a history that is not linearizable: a failure that no second
 * run of a test may hide. Pass it to `expect` as the message, or begin the message of an error with it.
 */
export const safety = 'SAFETY';
