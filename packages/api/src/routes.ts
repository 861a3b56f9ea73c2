import type { AuditDevices } from '@transitd/audit';
import { authMethodRoutes } from './auth/auth-methods.ts';
import { tokenRoutes } from './auth/token.ts';
import { tokenRoleRoutes } from './auth/token-roles.ts';
import type { LiveLog } from './operation/live-log.ts';
import type { RenderedMetrics } from './operation/metrics-port.ts';
import type { Route } from './operation/operation.ts';
import { auditRoutes } from './sys/audit.ts';
import { authRoutes } from './sys/auth.ts';
import { capabilityRoutes } from './sys/capabilities.ts';
import { featureLevelRoutes } from './sys/feature-level.ts';
import { generateRootRoutes } from './sys/generate-root.ts';
import { haRoutes } from './sys/ha.ts';
import { hostRoutes } from './sys/host-info.ts';
import { internalRoutes } from './sys/internal.ts';
import { managedKeyRoutes } from './sys/managed-keys.ts';
import { monitoringRoutes, noLiveLog } from './sys/monitoring.ts';
import { mountRoutes } from './sys/mounts.ts';
import { nodesRoutes } from './sys/nodes.ts';
import { openApiRoutes } from './sys/openapi.ts';
import { pluginRoutes } from './sys/plugins.ts';
import { policyRoutes } from './sys/policy.ts';
import { quotaRoutes } from './sys/quotas.ts';
import { raftRoutes } from './sys/raft.ts';
import { raftAutopilotRoutes } from './sys/raft-autopilot.ts';
import { raftJoinRoutes } from './sys/raft-join.ts';
import { raftSnapshotRoutes } from './sys/raft-snapshot.ts';
import { replicationControlRoutes } from './sys/replication/control.ts';
import { operationTokenRoutes } from './sys/replication/operation-token.ts';
import { replicationRoutes } from './sys/replication/status.ts';
import { rotateRoutes } from './sys/rotate.ts';
import { sealRoutes } from './sys/seal.ts';
import { statusRoutes } from './sys/status.ts';
import { toolRoutes } from './sys/tools.ts';
import { wrappingRoutes } from './sys/wrapping.ts';
import { transitCertificateRoutes } from './transit/certificates.ts';
import { transitDataRoutes } from './transit/data.ts';
import { transitKeyRoutes } from './transit/keys.ts';
import { transitTransferRoutes } from './transit/transfers.ts';
import { transitUsageRoutes } from './transit/usage.ts';

/** Prefixes a route with `:mount`, the path of the mount. */
const mounted = ({ path, accepts, operations }: Route): Route => ({
  path: `:mount/${path}`,
  operations,
  ...(accepts && { accepts }),
});

/** Returns every route of the server except `sys/health`, which the router answers itself. */
export function allRoutes(metrics: RenderedMetrics, audit?: AuditDevices, log: LiveLog = noLiveLog): readonly Route[] {
  const routes: readonly Route[] = [
    ...sealRoutes,
    ...raftJoinRoutes,
    ...raftRoutes,
    ...featureLevelRoutes,
    ...raftAutopilotRoutes,
    ...raftSnapshotRoutes,
    ...haRoutes,
    ...nodesRoutes,
    ...replicationRoutes,
    ...replicationControlRoutes,
    ...operationTokenRoutes,
    ...authRoutes, // before the mounts, whose paths may begin with `auth/`
    ...mountRoutes,
    ...pluginRoutes,
    ...monitoringRoutes(log),
    ...managedKeyRoutes,
    ...rotateRoutes,
    ...generateRootRoutes,
    ...tokenRoutes,
    ...tokenRoleRoutes,
    ...wrappingRoutes,
    ...quotaRoutes(() => routes),
    ...toolRoutes,
    ...internalRoutes,
    ...openApiRoutes(() => routes),
    ...hostRoutes,
    ...authMethodRoutes,
    ...policyRoutes,
    ...capabilityRoutes(() => routes),
    ...statusRoutes(metrics),
    ...auditRoutes(audit),
    ...[
      ...transitKeyRoutes,
      ...transitUsageRoutes,
      ...transitCertificateRoutes,
      ...transitTransferRoutes,
      ...transitDataRoutes,
    ].map(mounted),
  ];
  return routes;
}
