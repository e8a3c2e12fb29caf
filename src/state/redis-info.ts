/** Reads answers of INFO and CLUSTER INFO: lines of `name:value`. */

/** The value of a field; `undefined` if the answer does not have it. */
export const infoField = (info: string, name: string): string | undefined =>
  new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
