/**
 * Returns the canonical spelling of an https URL, for comparison only: scheme and host in lower case, no default
 * port, no user, no fragment, no dot at the end of the host, no dot segments, and no percent-encoding where none is needed (RFC 3986 §6.2).
 * Undefined for a text that is not a URL.
 */
export function canonicalUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, hostname, port, pathname, search } = new URL(text);
  const at = port === '' ? '' : `:${port}`;
  return `${protocol}//${hostname.replace(/\.$/, '')}${at}${decoded(pathname)}${decoded(search)}`;
}

/** Decodes the characters that need no encoding; writes the hex digits of all other characters in upper case. */
const decoded = (text: string): string =>
  text.replace(/%[0-9a-f]{2}/gi, (code) => {
    const character = String.fromCharCode(Number.parseInt(code.slice(1), 16));
    return /[A-Za-z0-9._~-]/.test(character) ? character : code.toUpperCase();
  });
