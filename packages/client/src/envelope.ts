/** A token in the response that creates or renews it. */
export interface Auth {
  readonly client_token: string;
  readonly accessor: string;
  readonly policies: readonly string[];
  readonly token_policies: readonly string[];
  readonly metadata: Readonly<Record<string, string>> | null;
  /** TTL in seconds; 0 when it does not expire. */
  readonly lease_duration: number;
  readonly renewable: boolean;
  readonly token_type: 'service' | 'batch';
  readonly orphan: boolean;
  readonly num_uses: number;
}

/** Sent in place of a wrapped response. */
export interface WrapInfo {
  readonly token: string;
  readonly accessor: string;
  readonly ttl: number;
  readonly creation_time: string;
  readonly creation_path: string;
  readonly wrapped_accessor?: string;
}

/** The body of most responses. Members have the names of the JSON body. */
export interface Envelope<Data = unknown> {
  readonly request_id: string;
  readonly lease_id: string;
  readonly renewable: boolean;
  readonly lease_duration: number;
  readonly data: Data;
  readonly wrap_info: WrapInfo | null;
  readonly warnings: readonly string[] | null;
  readonly auth: Auth | null;
}

/** The response to a change without a result: undefined unless there is a warning. */
export type Written = Envelope<null> | undefined;

/** The response that creates or renews a token, also by a login. */
export type Issued = Envelope<null> & { readonly auth: Auth };

export interface RootGeneration {
  readonly started: boolean;
  /** Returned to the caller that starts the attempt and to callers that provide a share. */
  readonly nonce: string;
  readonly progress: number;
  readonly required: number;
  readonly complete: boolean;
  /** Base64 of the token, XORed with the OTP. */
  readonly encoded_token: string;
  /** Returned if the attempt was started without an OTP. */
  readonly otp: string;
  readonly otp_length: number;
}
