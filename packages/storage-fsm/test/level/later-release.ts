import { supportedLevels } from '../../src/level/feature-levels.ts';

const { newest: present } = supportedLevels;

/** Makes this process one of a later release, which supports the levels up to `newest`; without an argument, of the present one again. */
export const laterRelease = (newest = present): void => void Object.assign(supportedLevels, { newest });
