/**
 * Whether tests with drawn seeds, random moments or many places of damage play all of them, as `.ci/run` does with `TEST_RUNS=all`, or a
 * part of them, which `npm test` plays in minutes.
 */
export const playsAll = process.env['TEST_RUNS'] === 'all';
