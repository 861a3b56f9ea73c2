export { PathForms } from './operation/path-forms.ts';
export { createFront } from './pipeline/front.ts';
export { asksHealth, healthReply, isProbe } from './pipeline/health-reply.ts';
export { Limits } from './pipeline/limits.ts';
export { allRoutes } from './routes.ts';
