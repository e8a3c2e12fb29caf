/**
 * A name that no machine can resolve. Its label is longer than 63 octets (RFC 1035 section 2.3.4), so that the resolver refuses it without
 * asking a name server, which may take longer than `deadlines.connect`.
 */
export const unresolvable = `${'a'.repeat(64)}.invalid`;
