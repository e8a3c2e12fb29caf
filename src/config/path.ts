/** How settings are addressed. */

/** Where a setting stands: names, and the index of an entry in a list. */
export type Path = readonly (string | number)[];
