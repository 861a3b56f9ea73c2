import type { Metrics } from '../metrics.ts';
import { tokenRoutes } from './auth-token.ts';
import type { Route } from './operation.ts';
import { capabilityRoutes } from './sys-capabilities.ts';
import { haRoutes } from './sys-ha.ts';
import { pluginRoutes } from './sys-plugins.ts';
import { policyRoutes } from './sys-policy.ts';
import { raftRoutes } from './sys-raft.ts';
import { raftJoinRoutes } from './sys-raft-join.ts';
import { raftSnapshotRoutes } from './sys-raft-snapshot.ts';
import { rotateRoutes } from './sys-rotate.ts';
import { sealRoutes } from './sys-seal.ts';
import { statusRoutes } from './sys-status.ts';
import { transitDataRoutes } from './transit-data.ts';
import { transitKeyRoutes } from './transit-keys.ts';
import { transitTransferRoutes } from './transit-transfers.ts';

/** The paths of a mount: `:mount` stands for where it lies. */
const mounted = ({ path, accepts, operations }: Route): Route => ({
  path: `:mount/${path}`,
  operations,
  ...(accepts && { accepts }),
});

/** Every path that this server knows, but for `sys/health`, which answers before all others. */
export const allRoutes = (metrics: Metrics): readonly Route[] => [
  ...sealRoutes,
  ...raftJoinRoutes,
  ...raftRoutes,
  ...raftSnapshotRoutes,
  ...haRoutes,
  ...pluginRoutes,
  ...rotateRoutes,
  ...tokenRoutes,
  ...policyRoutes,
  ...capabilityRoutes,
  ...statusRoutes(metrics),
  ...[...transitKeyRoutes, ...transitTransferRoutes, ...transitDataRoutes].map(mounted),
];
