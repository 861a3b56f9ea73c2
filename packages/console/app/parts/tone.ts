/** The rating of a state. Each rating has a color. */
export type Tone = 'ok' | 'info' | 'warn' | 'bad' | 'quiet';
