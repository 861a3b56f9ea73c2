export { PathForms } from './operation/path-forms.ts';
export { asksHealth, healthReply, isProbe } from './pipeline/health-reply.ts';
export { Limits } from './pipeline/limits.ts';
export { createRouter } from './pipeline/router.ts';
export { allRoutes } from './routes.ts';
