// Starts transitd as a release would be that supports replication between clusters: no release does yet.
import { supportedLevels, unreleasedLevel } from '@transitd/storage-fsm';

Object.assign(supportedLevels, { newest: unreleasedLevel });
await import('../../../packages/server/transitd.mjs');
