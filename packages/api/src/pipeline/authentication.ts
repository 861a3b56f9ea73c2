import { withinCidrs } from '@transitd/access';
import { permissionDenied, RequestError, tokenOf, unavailable, wrapTtlOf } from '@transitd/http';
import { type GuardedOperation, whereOf } from '../operation/operation.ts';
import { bodyOf, ignoreTooLarge, type RequestBodies } from './body-reading.ts';
import { ForwardToActive, type Outcome, Replied } from './outcome.ts';
import { type ReadSource, readSource } from './read-source.ts';
import type { AuthenticatedRequest, PipelineOptions, RoutedRequest } from './request.ts';

/** The stage that authenticates the caller and decides whether this node may answer. */
export class Authentication {
  readonly #options: PipelineOptions;
  readonly #bodies: RequestBodies;

  constructor(options: PipelineOptions, bodies: RequestBodies) {
    this.#options = options;
    this.#bodies = bodies;
  }

  /**
   * Returns the request with its caller. Returns an outcome instead on a sealed node, without a valid token, or if the active node has to
   * answer.
   * @throws RequestError, StoreError, RateLimited
   */
  async authenticate(request: RoutedRequest<GuardedOperation>): Promise<AuthenticatedRequest | Outcome> {
    const { req, res, canonical, verb, operation, address, exchange } = request;
    const { node } = this.#options;
    const { services } = node;
    if (services === undefined) {
      // An unsealed node that is still loading its services must not report that it is sealed.
      if (operation.whenSealed !== undefined && node.sealStatus.sealed) return new Replied(operation.whenSealed);
      throw unavailable(node);
    }
    const wrapTtlS = wrapTtlOf(req.headers);
    if (wrapTtlS > 0 && operation.isSlow) throw new RequestError('invalid_request', 'this response cannot be wrapped');
    const where = wrapTtlS > 0 ? 'leader' : whereOf(operation, verb); // a wrapped response is stored in the log
    const token = tokenOf(req.headers);
    const { epoch } = services.tokens;
    const found = token === undefined ? undefined : services.tokens.authenticate(token);
    let principal = found instanceof Promise ? await found : found;
    // A token that is used outside its bound CIDR blocks counts as missing.
    if (principal !== undefined && !withinCidrs(principal.record.boundCidrs, address)) principal = undefined;
    services.quotas.admitToken(canonical, principal?.id, address);
    // A request without a token does not wait for an index and is not forwarded.
    const chosen =
      token === undefined ? 'here' : readSource(req.headers, where, this.#options, { waits: principal !== undefined });
    const source: ReadSource = chosen instanceof Promise ? await chosen : chosen;
    if (source === 'reader') exchange?.defer();
    exchange?.setCaller(token, principal);
    exchange?.setWrapTtl(wrapTtlS);
    if (token === undefined || principal === undefined) return this.#refuse(request, source);
    if (source === 'none') return new ForwardToActive(await this.#bodies.toForward(operation, req, res), principal.id);
    return { ...request, services, token, principal, epoch, source, where, wrapTtlS };
  }

  /** Refuses a request without a valid token, or forwards it. @throws RequestError `permission_denied`, or the error in the body */
  async #refuse(request: RoutedRequest<GuardedOperation>, source: ReadSource): Promise<ForwardToActive> {
    const { req, res, operation } = request;
    // A token that this node does not know yet may have been created a moment ago.
    if (source === 'reader' || source === 'none') return new ForwardToActive(await this.#bodies.toForward(operation, req, res));
    if (operation.streamsBody) throw permissionDenied();
    // Malformed JSON is reported before the missing token, as clients expect; a longer body stays unread and ends the connection.
    const bytes = await this.#bodies.ofUnauthenticated(req, res).catch(ignoreTooLarge);
    await bodyOf(bytes, request);
    throw permissionDenied();
  }
}
