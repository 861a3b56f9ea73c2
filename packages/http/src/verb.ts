/** Verb of a request, by which its operation is looked up. PUT counts as POST, and GET with `list=true` as LIST. */
export type Verb = 'GET' | 'POST' | 'DELETE' | 'LIST';
