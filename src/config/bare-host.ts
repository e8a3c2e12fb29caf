/** A host as sockets and address lists take it: URLs put an IPv6 address in brackets (RFC 3986 section 3.2.2). */
export const bareHost = (host: string): string => host.replace(/^\[|\]$/g, '');
