export { authMethods } from './auth/auth-methods.ts';
export type { FollowOptions, LiveLog } from './operation/live-log.ts';
export type { RequestMetrics } from './operation/metrics-port.ts';
export { createGatewayRouter } from './pipeline/gateway-router.ts';
export { asksHealth, healthReply, isProbe } from './pipeline/health-reply.ts';
export { callerPart, Limits, type ThreadLimits } from './pipeline/limits.ts';
export { PathRouter } from './pipeline/path-router.ts';
export { createRouter, type RouterOptions } from './pipeline/router.ts';
export { allRoutes } from './routes.ts';
