/** A part of a list of names. */
export interface Page {
  /** Only names after this one, which need not exist. */
  readonly after?: string;
  /** Maximum number of names; all when absent. */
  readonly limit?: number;
}

/** Returns the options of a request for a page. */
export const inPage = ({ after, limit }: Page): { readonly query: Readonly<Record<string, string>> } => ({
  query: { ...(after !== undefined && { after }), ...(limit !== undefined && { limit: String(limit) }) },
});
