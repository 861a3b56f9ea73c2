import { randomUUID } from 'node:crypto';
import type { Principal } from '@transitd/access';
import { runInSlices } from '@transitd/event-loop';
import type { JsonSchema, Reply } from '@transitd/http';
import { type PolicyRule, Refusal, type RefusedBy } from '@transitd/storage-fsm';
import type { AuditWriter, EntryType } from './audit-devices.ts';
import type { AuditKey, HashText } from './audit-key.ts';
import {
  type AuditedMount,
  type AuditedVerb,
  type PolicyResults,
  type RequestFields,
  requestEntry,
  requestFields,
  responseEntry,
} from './entry.ts';

/** No audit device could write an entry. The message reaches the caller and says whether the request took effect. */
export class AuditError extends Refusal<'audit_failed'> {}

export interface ExchangeParts {
  readonly devices: AuditWriter;
  readonly auditKey: Pick<AuditKey, 'hashOf'>;
  /** Finds the mount that the path belongs to. */
  readonly mount: () => Promise<AuditedMount>;
  readonly verb: AuditedVerb;
  readonly path: string;
  readonly address: string;
  readonly port: number | undefined;
  readonly forwardedFrom: string | undefined;
  /** Schema that declares the members of the request; the names of all other members are hashed. */
  readonly schema: JsonSchema;
  /** The response repeats data of a caller: the names of its members are hashed too. */
  readonly repeatsData?: boolean;
}

/** The request as one device records it. */
interface DeviceRequest {
  readonly hash: HashText;
  readonly fields: RequestFields;
}

/** Records one request and its response as a pair of entries, on the node that executes or refuses the request. */
export class Exchange {
  readonly #parts: ExchangeParts;
  readonly #id = randomUUID();
  #token: string | undefined;
  #principal: Principal | undefined;
  #data: object | undefined;
  #wrapTtlS = 0;
  #policyResults: PolicyResults | undefined;
  #refusedBy: RefusedBy | undefined;
  /** The request entry is written with the response entry. */
  #isDeferred = false;
  #mount: AuditedMount = { point: '', type: '' };
  /** By the name of the device. */
  #requests: ReadonlyMap<string, DeviceRequest> | undefined;
  #begun = false;
  #ended = false;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
  }

  /** The request entry was written, or its write failed. */
  get begun(): boolean {
    return this.#begun;
  }

  /** @param principal - undefined when the token is not valid or none is required */
  setCaller(token: string | undefined, principal?: Principal): void {
    this.#token = token;
    this.#principal = principal;
  }

  /** The response will be wrapped for this many seconds; 0 when it will not. */
  setWrapTtl(ttlS: number): void {
    this.#wrapTtlS = ttlS;
  }

  /** @param rules - the rules of policies that allow the request */
  setGrantedBy(rules: readonly PolicyRule[]): void {
    this.#policyResults = { allowed: true, rules };
    this.#refusedBy = undefined;
  }

  /** @param refusedBy - what refuses the request; undefined if its error message says it */
  setRefusedBy(refusedBy: RefusedBy | undefined): void {
    this.#refusedBy = refusedBy;
    const rules = refusedBy?.rules ?? this.#policyResults?.rules;
    if (refusedBy !== undefined && rules !== undefined) this.#policyResults = { allowed: false, rules };
  }

  /**
   * Delays the request entry until there is a response: until then the request may still be forwarded, and then the other node records it.
   */
  defer(): void {
    this.#isDeferred = true;
  }

  /**
   * Writes the request entry. Call it before any work is done; if it throws, the request must not be executed.
   * @throws AuditError
   */
  async begin(data: object): Promise<void> {
    this.#data = data;
    if (!this.#isDeferred) await this.#writeRequest(nothingDone);
  }

  /**
   * Writes the response entry, and a deferred request entry before it. Returns the response to send, which contains the request id of the
   * entries.
   * @param isDone - whether any work may have been done for the request, refused or not
   * @throws AuditError
   */
  async end(reply: Reply, { isDone = this.#begun }: { readonly isDone?: boolean } = {}): Promise<Reply> {
    if (this.#ended) return reply;
    this.#ended = true;
    const failure = isDone ? unrecordedOutcome(reply.status) : nothingDone;
    if (!this.#begun) await this.#writeRequest(failure);
    const time = new Date().toISOString();
    const response = { ...reply, requestId: this.#id };
    const { repeatsData = false } = this.#parts;
    const decided = { policyResults: this.#policyResults, refusedBy: this.#refusedBy };
    const answered = { reply: response, data: this.#data, mount: this.#mount, time, repeatsData, ...decided };
    await this.#write('response', failure, ({ hash, fields }) => responseEntry(fields, answered, hash));
    return response;
  }

  async #writeRequest(failure: string): Promise<void> {
    this.#begun = true;
    const time = new Date().toISOString();
    await this.#build(failure, () => this.#hashRequest());
    await this.#write('request', failure, ({ fields }) => requestEntry(fields, time));
  }

  /** Long entries are built in slices, before the write and its time limit begin. */
  async #build(failure: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#parts.devices.buildFailed(error);
      throw auditFailed(failure, error);
    }
  }

  /** Derives the devices' keys before the request is executed: a request may seal the node, and its response must be recorded too. */
  async #hashRequest(): Promise<void> {
    const { devices, auditKey, verb, path, address, port, forwardedFrom, schema } = this.#parts;
    this.#mount = await this.#parts.mount();
    const audited = {
      ...{ id: this.#id, verb, path, mount: this.#mount, address, port, forwardedFrom, schema },
      ...{ token: this.#token, principal: this.#principal, data: this.#data, wrapTtlS: this.#wrapTtlS },
      policyResults: this.#policyResults,
    };
    const requests = new Map<string, DeviceRequest>();
    for (const device of devices.names) {
      const hash = await auditKey.hashOf(device);
      requests.set(device, { hash, fields: await runInSlices(requestFields(audited, hash)) });
    }
    this.#requests = requests;
  }

  async #write(type: EntryType, failure: string, entryOf: (request: DeviceRequest) => string | Promise<string>): Promise<void> {
    const entries = new Map<string, string>();
    await this.#build(failure, async () => {
      for (const [device, request] of this.#requests ?? []) entries.set(device, await entryOf(request));
    });
    try {
      await this.#parts.devices.write(type, (device) => {
        const entry = entries.get(device);
        if (entry === undefined) throw new Error('no entry was built for this audit device');
        return entry;
      });
    } catch (error) {
      throw auditFailed(failure, error);
    }
  }
}

const nothingDone = 'nothing was done';

/** The outcome of a request whose response entry could not be written. */
const unrecordedOutcome = (status: number): string =>
  status < 400
    ? 'the request took effect, but its response is withheld'
    : status < 500
      ? 'the request was refused'
      : 'the request failed, and may have taken effect';

const auditFailed = (failure: string, cause: unknown): AuditError =>
  new AuditError('audit_failed', `audit: no audit device could write the entry of this request: ${failure}`, { cause });
