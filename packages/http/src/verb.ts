/** PUT is POST, and GET with a true `list` is LIST, before an operation is looked for. */
export type Verb = 'GET' | 'POST' | 'DELETE' | 'LIST';
